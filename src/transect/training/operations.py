"""Operations that a model cannot do without, layer by layer: what bounds are made of.

One operation is an addition, subtraction, multiplication, division, root, exponential or logarithm, or
the choice of the larger of two numbers. A multiply-add is two. A sum of K products is K multiply-adds,
as benchmarks of the peak rate count theirs: the first one adds to the bias, which so costs nothing
of its own. Moving numbers, signs and masks cost nothing.

Counted is the least that what a layer is defined to be asks for, whatever a library does beyond it:

- No product with the zeros of a padding. No gradient of an input that no earlier weight needs.
- A batch norm in training takes one pass for sum and sum of squares (3) and one for a x + b (2);
  backwards, two sums for its weight and bias (3) and one of three terms for its input (4). In
  prediction it is a factor in the weights beside it. What happens once per channel is left out.
- A layer norm takes the same passes over the features of a sample, in prediction too.
- Windows of a pooling share their comparisons: each number has to lose one, or be a maximum.

Algorithms that multiply less than the definition (Winograd's, Fourier's, Strassen's) are not
considered: a cell that uses one may lie above its bound, and the report then says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Shape,
    Sigmoid,
    inner,
    shapes,
    weight_shapes,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operations:
    """Of one layer for one sample: in prediction and forwards in training, and backwards the
    gradients of its trained weights and of its input.
    """

    prediction: int = 0
    forward: int = 0
    weights: int = 0
    inputs: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Windows:
    """Windows along one axis of `size` numbers, the first one `before` its beginning.

    `count` of them, each of `kernel` places that lie `dilation` apart, `stride` from one another.
    """

    size: int
    kernel: int
    count: int
    before: int = 0
    stride: int = 1
    dilation: int = 1

    def _places(self) -> list[int]:
        places = (
            window * self.stride - self.before + place * self.dilation
            for window in range(self.count)
            for place in range(self.kernel)
        )
        return [place for place in places if 0 <= place < self.size]

    @property
    def taps(self) -> int:
        """Places of all windows that hold a number, not padding."""
        return len(self._places())

    @property
    def covered(self) -> int:
        """Numbers that are in any window."""
        return len(set(self._places()))


def _windows(layer: Conv2d | MaxPool2d, before: Shape, after: Shape) -> list[Windows]:
    kernel, stride = (layer.kernel, layer.stride) if isinstance(layer, Conv2d) else (layer.size, layer.step)
    return [
        Windows(size=size, kernel=kernel, count=count, before=layer.padding, stride=stride)
        for size, count in zip(before[1:], after[1:], strict=True)
    ]


def layer_operations(layer: Layer, before: Shape, after: Shape) -> Operations:
    """Count one layer, given the shapes of one sample before and after it.

    Of a layer with others inside only its own sum is counted, and backwards that of their inputs' gradients.
    Raises TypeError for a kind of layer that has no rule.
    """
    read, written = prod(before), prod(after)
    match layer:
        case Linear(inputs, outputs):
            products = 2 * inputs * outputs
            return Operations(prediction=products, forward=products, weights=products + outputs, inputs=products)
        case Conv2d(inputs, outputs):
            taps = prod(axis.taps for axis in _windows(layer, before, after))
            products = 2 * inputs * outputs // layer.groups * taps
            return Operations(
                prediction=products, forward=products, inputs=products, weights=products + layer.bias * written
            )
        case BatchNorm2d():
            return Operations(forward=5 * read, weights=3 * read, inputs=4 * read)
        case LayerNorm():
            return Operations(prediction=5 * read, forward=5 * read, inputs=7 * read)
        case MaxPool2d():
            covered = prod(axis.covered for axis in _windows(layer, before, after))
            choices = before[0] * covered - written
            return Operations(prediction=choices, forward=choices)
        case GlobalAveragePool():
            # A sum, then a division for each channel.
            return Operations(prediction=read + written, forward=read + written, inputs=written)
        case ReLU():
            return Operations(prediction=read, forward=read, inputs=read)
        case Sigmoid():
            # 1 / (1 + e^-x), and y (1 - y) times the gradient.
            return Operations(prediction=3 * read, forward=3 * read, inputs=3 * read)
        case Flatten():
            return Operations()
        case Residual():
            return Operations(prediction=written, forward=written, inputs=read)
        case Branches(branches):
            return Operations(inputs=(len(branches) - 1) * read)
    raise TypeError(f"the operations of layer {layer!r} are not known: add them to {__name__}")


def prediction_operations(layers: tuple[Layer, ...], sample: Shape) -> int:
    """Count one sample's forward pass in prediction."""
    total, before = 0, sample
    for layer, after in zip(layers, shapes(layers, sample)[1:], strict=True):
        total += layer_operations(layer, before, after).prediction
        total += sum(prediction_operations(chain, before) for chain in inner(layer).values())
        before = after
    return total


def training_operations(layers: tuple[Layer, ...], sample: Shape, *, needed: bool = False) -> int:
    """Count one sample's forward and backward pass in training, without the loss.

    `needed`: whether the gradient of the first layer's input is; data does not need one.
    """
    total, before = 0, sample
    for layer, after in zip(layers, shapes(layers, sample)[1:], strict=True):
        counts = layer_operations(layer, before, after)
        total += counts.forward + counts.weights + needed * counts.inputs
        total += sum(training_operations(chain, before, needed=needed) for chain in inner(layer).values())
        needed = needed or any(weight.trained for weight in weight_shapes((layer,)))
        before = after
    return total
