"""Cases: whole networks."""

from __future__ import annotations

from typing import Any

from step_coverage.case import CLASSES, case, nn, normal, torch


def _residual(inside: Any, shortcut: Any) -> Any:

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside, self.shortcut = inside, shortcut

        def forward(self, x: Any) -> Any:
            return (self.inside(x) + self.shortcut(x)).relu()

    return Residual()


def _convolution(into: int, out: int, kernel: int, stride: int = 1) -> list[Any]:
    """Return a convolution that keeps the size but for its stride, and its norm."""
    convolution = nn.Conv2d(into, out, kernel, stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(out)]


def _basic(into: int, width: int, stride: int) -> Any:
    """Return ResNet's block of two convolutions (He and others, arXiv:1512.03385, figure 5 left)."""
    same = into == width and stride == 1
    return _residual(
        nn.Sequential(*_convolution(into, width, 3, stride), nn.ReLU(), *_convolution(width, width, 3)),
        nn.Identity() if same else nn.Sequential(*_convolution(into, width, 1, stride)),
    )


def _bottleneck(into: int, width: int, stride: int) -> Any:
    """Return ResNet-50's block of three convolutions (arXiv:1512.03385, figure 5 right)."""
    same = into == 4 * width and stride == 1
    return _residual(
        nn.Sequential(
            *_convolution(into, width, 1),
            nn.ReLU(),
            *_convolution(width, width, 3, stride),
            nn.ReLU(),
            *_convolution(width, 4 * width, 1),
        ),
        nn.Identity() if same else nn.Sequential(*_convolution(into, 4 * width, 1, stride)),
    )


@case("Network", normal(1, 8, 8))
def digits_cnn() -> Any:
    """Two convolutions with max pooling, then two linear layers."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 16),
        nn.ReLU(),
        nn.Linear(16, CLASSES),
    )


@case("Network", normal(3, 8, 8))
def resnet_small() -> Any:
    """Three basic residual blocks as in ResNet-20."""
    return nn.Sequential(
        *_convolution(3, 4, 3),
        nn.ReLU(),
        _basic(4, 4, 1),
        _basic(4, 8, 2),
        _basic(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, CLASSES),
    )


@case("Network", normal(3, 64, 64), batch=2, rate=None)
def resnet50() -> Any:
    """ResNet-50, all 16 bottleneck blocks, on images of 64 by 64."""
    blocks, into = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for position in range(count):
            blocks.append(_bottleneck(into, width, stride if position == 0 else 1))
            into = 4 * width
    return nn.Sequential(
        *_convolution(3, 64, 7, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, padding=1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2048, CLASSES),
    )


@case("Network", normal(3, 8, 8))
def mobile_net() -> Any:
    """An inverted residual block: expansion, depthwise convolution, squeeze and excitation, hardswish."""

    class Excited(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(12, 4, 1), nn.ReLU(), nn.Conv2d(4, 12, 1), nn.Sigmoid()
            )

        def forward(self, x: Any) -> Any:
            return x * self.gate(x)

    inside = nn.Sequential(
        *_convolution(4, 12, 1),
        nn.Hardswish(),
        nn.Conv2d(12, 12, 3, padding=1, groups=12, bias=False),
        nn.BatchNorm2d(12),
        nn.Hardswish(),
        Excited(),
        *_convolution(12, 4, 1),
    )
    return nn.Sequential(
        *_convolution(3, 4, 3, 2),
        nn.Hardswish(),
        _residual(inside, nn.Identity()),
        nn.Flatten(),
        nn.Linear(64, CLASSES),
    )


@case("Network", normal(2, 8, 8), y=normal(1, 8, 8), loss=lambda output, target: _mean_square(output, target))
def u_net() -> Any:
    """An encoder and decoder over pixels: transposed convolution, skip connections, group norm, MSE."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
            self.inner = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.SiLU())
            self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
            self.out = nn.Conv2d(8, 1, 3, padding=1)

        def forward(self, x: Any) -> Any:
            outer = self.down(x)
            return self.out(torch.cat([outer, self.up(self.inner(outer))], dim=1))

    return Net()


def _mean_square(output: Any, target: Any) -> Any:
    return ((output - target) ** 2).mean()
