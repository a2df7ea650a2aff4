"""Residual networks (K. He et al., "Deep residual learning for image recognition", 2015).

Parameter counts, running statistics left out, are those of the paper's networks as torchvision has
them; a network here differs from its 1000-class original by its last layer only.
"""

from __future__ import annotations

from collections.abc import Callable

from transect.training.layers import BatchNorm2d, Conv2d, GlobalAveragePool, Layer, Linear, MaxPool2d, ReLU, Residual

# Blocks per stage of each published depth (table 1 of the paper).
BOTTLENECKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}

Block = Callable[[int, int, int], Residual]


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> tuple[Layer, Layer]:
    """Convolve, keeping the size where the stride is 1, and normalise: no bias before a batch norm."""
    convolution = Conv2d(inputs, outputs, kernel, kernel // 2, stride, bias=False)
    return convolution, BatchNorm2d(outputs)


def _residual(body: tuple[Layer, ...], inputs: int, outputs: int, stride: int) -> Residual:
    """Join a body and its shortcut: a projection where the shape changes, else the identity."""
    same = inputs == outputs and stride == 1
    return Residual(body, () if same else _convolution(inputs, outputs, 1, stride))


def _basic(inputs: int, width: int, stride: int) -> Residual:
    body = (*_convolution(inputs, width, 3, stride), ReLU(), *_convolution(width, width, 3))
    return _residual(body, inputs, width, stride)


def _bottleneck(inputs: int, width: int, stride: int) -> Residual:
    body = (
        *_convolution(inputs, width, 1),
        ReLU(),
        *_convolution(width, width, 3, stride),
        ReLU(),
        *_convolution(width, 4 * width, 1),
    )
    return _residual(body, inputs, 4 * width, stride)


def _stages(
    block: Block, expansion: int, inputs: int, widths: tuple[int, ...], counts: tuple[int, ...]
) -> tuple[Layer, ...]:
    """Chain blocks; the first of each stage but the first one halves the size."""
    layers: list[Layer] = []
    for stage, (width, count) in enumerate(zip(widths, counts, strict=True)):
        for number in range(count):
            stride = 2 if stage and not number else 1
            layers += [block(inputs, width, stride), ReLU()]
            inputs = expansion * width
    return tuple(layers)


def resnet_cifar(blocks: int, classes: int) -> tuple[Layer, ...]:
    """Return the network of 6 `blocks` + 2 layers for small images (section 4.2 of the paper).

    Its shortcuts are projections where the shape changes (option B), not padded identities.
    """
    stages = _stages(_basic, 1, 16, (16, 32, 64), (blocks,) * 3)
    return (*_convolution(3, 16, 3), ReLU(), *stages, GlobalAveragePool(), Linear(64, classes))


def resnet_bottleneck(depth: int, classes: int, channels: int = 3) -> tuple[Layer, ...]:
    """Return ResNet-50, -101 or -152 in the variant v1.5, with its stride in the 3 x 3 convolution."""
    stages = _stages(_bottleneck, 4, 64, (64, 128, 256, 512), BOTTLENECKS[depth])
    stem = (*_convolution(channels, 64, 7, 2), ReLU(), MaxPool2d(3, 2, 1))
    return (*stem, *stages, GlobalAveragePool(), Linear(4 * 512, classes))


def _preactivated(inputs: int, width: int, stride: int) -> Residual:
    """Normalise and rectify before each convolution; nothing stands on the shortcut but a projection."""
    body = (
        BatchNorm2d(inputs),
        ReLU(),
        Conv2d(inputs, width, 1, bias=False),
        BatchNorm2d(width),
        ReLU(),
        Conv2d(width, width, 3, 1, stride, bias=False),
        BatchNorm2d(width),
        ReLU(),
        Conv2d(width, 4 * width, 1, bias=False),
    )
    same = inputs == 4 * width and stride == 1
    shortcut = () if same else (Conv2d(inputs, 4 * width, 1, stride=stride, bias=False),)
    return Residual(body, shortcut)


def resnet_preactivated(blocks: int, channels: int, classes: int) -> tuple[Layer, ...]:
    """Return the bottleneck network of 9 `blocks` + 2 layers for small images.

    K. He et al., "Identity mappings in deep residual networks", 2016: 111 blocks are its ResNet-1001. Here
    the projections take the block's input, not what its first batch norm makes of it.
    """
    layers: list[Layer] = [Conv2d(channels, 16, 3, 1, bias=False)]
    inputs = 16
    for stage, width in enumerate((16, 32, 64)):
        for number in range(blocks):
            layers.append(_preactivated(inputs, width, 2 if stage and not number else 1))
            inputs = 4 * width
    return (*layers, BatchNorm2d(inputs), ReLU(), GlobalAveragePool(), Linear(inputs, classes))
