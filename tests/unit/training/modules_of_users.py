"""Modules as people write them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Norms(nn.Module):
    """Batch norm, whose statistics training changes, group norm, and activations without a name of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.SiLU(),
            nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=2),
            nn.GroupNorm(2, 8),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class Words(nn.Module):
    """Attention over words, with one matrix at two places."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 8)
        self.again = nn.Linear(8, 9, bias=False)
        self.again.weight = self.table.weight
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(9, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.again(self.layer(self.table(x))).mean(1))


class Dropped(nn.Module):
    """Draws in its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(functional.dropout(x.flatten(1), 0.5, self.training))


class Factors(nn.Module):
    """An operator that torchax does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.geqrf(x)[0].flatten(1))


class Branches(nn.Module):
    """Asks for a value, which torch cannot export."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(1)
        return self.head(flat if flat.sum() > 0 else -flat)
