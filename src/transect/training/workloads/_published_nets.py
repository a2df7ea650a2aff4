"""Networks that were published before and beside the residual ones, by their lists of layers.

All are written for any width and input, so that those of the papers can be counted; none has dropout, whose draws no two
frameworks share.

- AlexNet: A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", arXiv:1404.5997, the
  one-tower form of A. Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012.
- VGG-11: K. Simonyan, A. Zisserman, "Very deep convolutional networks for large-scale image recognition",
  arXiv:1409.1556, column A of table 1.
- Inception: C. Szegedy et al., "Going deeper with convolutions", arXiv:1409.4842, table 1; with batch norms as in
  S. Ioffe, C. Szegedy, "Batch normalization", arXiv:1502.03167.
- MobileNet: A. Howard et al., "MobileNets", arXiv:1704.04861, table 1.
"""

from __future__ import annotations

from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    Linear,
    MaxPool2d,
    ReLU,
)

# Of each module: 1 x 1; 1 x 1 before 3 x 3; 1 x 1 before 5 x 5; 1 x 1 after pooling.
INCEPTIONS = {
    "3a": ((64,), (96, 128), (16, 32), (32,)),
    "3b": ((128,), (128, 192), (32, 96), (64,)),
    "4a": ((192,), (96, 208), (16, 48), (64,)),
    "4b": ((160,), (112, 224), (24, 64), (64,)),
    "4c": ((128,), (128, 256), (24, 64), (64,)),
    "4d": ((112,), (144, 288), (32, 64), (64,)),
    "4e": ((256,), (160, 320), (32, 128), (128,)),
    "5a": ((256,), (160, 320), (32, 128), (128,)),
    "5b": ((384,), (192, 384), (48, 128), (128,)),
}
# Outputs and stride of each pair of a depthwise and a pointwise convolution.
SEPARABLE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


def _normalised(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> tuple[Layer, ...]:
    """Convolve, keeping the size where the stride is 1, normalise and rectify."""
    convolution = Conv2d(inputs, outputs, kernel, kernel // 2, stride, bias=False, groups=groups)
    return convolution, BatchNorm2d(outputs), ReLU()


def _head(inputs: int, width: int, classes: int) -> tuple[Layer, ...]:
    """Return the three linear layers at the end of AlexNet and VGG."""
    return Flatten(), Linear(inputs, width), ReLU(), Linear(width, width), ReLU(), Linear(width, classes)


def alexnet(divisor: int, stem: Conv2d, side: int, classes: int) -> tuple[Layer, ...]:
    """Return five convolutions and three linear layers, of a `divisor`-th of the published widths.

    `stem` is the first convolution, which alone depends on the size of images; `side` is what is left of them at
    the end. As in torchvision there is no local response normalisation.
    """
    a, b, c, d = (width // divisor for width in (64, 192, 384, 256))
    return (
        *(stem, ReLU(), MaxPool2d(3, 2)),
        *(Conv2d(a, b, 5, 2), ReLU(), MaxPool2d(3, 2)),
        *(Conv2d(b, c, 3, 1), ReLU(), Conv2d(c, d, 3, 1), ReLU(), Conv2d(d, d, 3, 1), ReLU(), MaxPool2d(3, 2)),
        *_head(d * side * side, 4096 // divisor, classes),
    )


def vgg11(divisor: int, side: int, classes: int) -> tuple[Layer, ...]:
    """Return eight convolutions with batch norms and three linear layers, of a `divisor`-th of the published widths."""
    layers: list[Layer] = []
    inputs = 3
    for widths in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
        for width in widths:
            layers += _normalised(inputs, width // divisor, 3)
            inputs = width // divisor
        layers.append(MaxPool2d(2))
    return (*layers, *_head(inputs * side * side, 4096 // divisor, classes))


def inception(inputs: int, name: str, divisor: int = 1) -> tuple[Branches, int]:
    """Return a module of the published table, and its number of outputs."""
    one, three, five, pooled = (tuple(width // divisor for width in widths) for widths in INCEPTIONS[name])
    branches = (
        _normalised(inputs, one[0], 1),
        (*_normalised(inputs, three[0], 1), *_normalised(three[0], three[1], 3)),
        (*_normalised(inputs, five[0], 1), *_normalised(five[0], five[1], 5)),
        (MaxPool2d(3, 1, 1), *_normalised(inputs, pooled[0], 1)),
    )
    return Branches(branches), one[0] + three[1] + five[1] + pooled[0]


def inception_small(modules: tuple[tuple[str, ...], ...], divisor: int, classes: int) -> tuple[Layer, ...]:
    """Return a convolution and groups of modules with a pooling before each, for small images."""
    inputs = 192 // divisor
    layers: list[Layer] = [*_normalised(3, inputs, 3)]
    for names in modules:
        layers.append(MaxPool2d(3, 2, 1))
        for name in names:
            module, inputs = inception(inputs, name, divisor)
            layers.append(module)
    return (*layers, GlobalAveragePool(), Linear(inputs, classes))


def mobilenet(divisor: int, first_stride: int, classes: int) -> tuple[Layer, ...]:
    """Return a convolution, 13 pairs of a depthwise and a pointwise one, each normalised, and a linear layer.

    A `divisor` of 4 is the paper's width multiplier of 0.25. `first_stride` is 2 in the paper, for 224 x 224 pixels.
    """
    inputs = 32 // divisor
    layers = [*_normalised(3, inputs, 3, first_stride)]
    for width, stride in SEPARABLE:
        layers += _normalised(inputs, inputs, 3, stride, groups=inputs)
        layers += _normalised(inputs, width // divisor, 1)
        inputs = width // divisor
    return (*layers, GlobalAveragePool(), Linear(inputs, classes))
