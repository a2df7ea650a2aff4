"""Modules as people write them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset, random_split


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


class Counts(nn.Module):
    """Counts its steps, and computes with the number."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.steps += 1
        return self.head(x.flatten(1)) * (1 + 0.1 * self.steps)


class Branches(nn.Module):
    """Asks for a value, which torch cannot export."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(1)
        return self.head(flat if flat.sum() > 0 else -flat)


class Rarely(nn.Module):
    """Dropout that leaves the two samples that a module is tried with alone, for most seeds."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(functional.dropout(x.flatten(1), 0.001, self.training))


class Turned(nn.Module):
    """Complex numbers, of which a change of precision would leave the real part."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)
        self.register_buffer("turn", torch.polar(torch.ones(36), torch.arange(36.0)), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.reshape(-1, 36, 2))
        return self.head(torch.view_as_real(pairs * self.turn).flatten(1))


class Single(nn.Module):
    """Knows no precision but float32."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.float().flatten(1))


class Late(nn.Module):
    """Has no weights before a first batch."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.LazyLinear(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.flatten(1))


class Shuffled(nn.Module):
    """Draws what it is made of, by numpy."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 3)
        self.order = np.random.permutation(72)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.flatten(1)[:, self.order])


class Numbered(nn.Module):
    """Gives real numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(72, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.flatten(1))


# A module that the file itself has made.
made = Dropped()


class Numbers(Dataset):
    """Sample i holds i."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, number: int) -> tuple[np.ndarray, int]:
        return np.full(2, number, np.float32), number % 2


def divided() -> tuple[Dataset, Dataset]:
    """Divide as people do, without a seed."""
    first, second = random_split(Numbers(), [30, 10])
    return first, second
