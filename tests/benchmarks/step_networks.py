"""The networks whose training steps are timed; in the environment `torch`."""

from __future__ import annotations

import torch
from torch import nn

CLASSES, TOKENS, WIDTH, LENGTH = 10, 256, 64, 32
# One sample of the input by network.
NETWORKS = {"mlp": (64,), "digits-cnn": (1, 8, 8), "resnet20": (3, 32, 32), "transformer": (LENGTH,)}


def network(name: str) -> nn.Module:
    """Return a network in training mode, always with the same weights."""
    torch.manual_seed(0)
    if name == "mlp":
        layers = [nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(256, CLASSES))
    if name == "digits-cnn":
        first = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        head = [nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, CLASSES)]
        return nn.Sequential(*first, *second, *head)
    return _resnet20() if name == "resnet20" else _Encoder()


def rows(name: str, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(batch)
    shape = (batch, *NETWORKS[name])
    if name == "transformer":
        x = torch.randint(TOKENS, shape, generator=generator)
    else:
        x = torch.randn(shape, generator=generator)
    return x, torch.randint(CLASSES, (batch,), generator=generator)


def _convolution(into: int, out: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    layer = nn.Conv2d(into, out, kernel, stride, padding=kernel // 2, bias=False)
    return [layer, nn.BatchNorm2d(out)]


class _Residual(nn.Module):
    def __init__(self, into: int, width: int, stride: int) -> None:
        super().__init__()
        inside = [*_convolution(into, width, 3, stride), nn.ReLU(), *_convolution(width, width, 3)]
        self.inside = nn.Sequential(*inside)
        same = into == width
        self.shortcut = nn.Sequential(*([] if same else _convolution(into, width, 1, stride)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.inside(x) + self.shortcut(x)).relu()


def _resnet20() -> nn.Module:
    """Return ResNet-20 for images of 32 by 32 (He and others, arXiv:1512.03385, section 4.2)."""
    blocks, into = [], 16
    for width in (16, 32, 64):
        for position in range(3):
            stride = 2 if width > 16 and position == 0 else 1
            blocks.append(_Residual(into, width, stride))
            into = width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES)]
    return nn.Sequential(*_convolution(3, 16, 3), nn.ReLU(), *blocks, *head)


class _Encoder(nn.Module):
    """Two layers over 32 tokens, width 64, four heads, without dropout; the mean is classified."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.embed, self.place = (nn.Embedding(TOKENS, WIDTH), nn.Parameter(torch.zeros(LENGTH, WIDTH)))
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embed(tokens) + self.place).mean(1))
