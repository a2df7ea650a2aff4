"""A framework-neutral description of a model: every framework builds its own from it.

Layouts: inputs NCHW, `Linear` weight (out, in), `Conv2d` weight (out, in / groups, kernel, kernel).
Parameters are named by their layer's place, as in nested torch `Sequential`s: `0.weight`,
`4.body.1.bias`, `4.shortcut.0.weight`, `5.2.0.weight` (of branch 2); of a batch norm also `1.running_mean` and
`1.running_var`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Linear:
    """y = x W^T + b."""

    inputs: int
    outputs: int


@dataclass(frozen=True, slots=True)
class Conv2d:
    """Cross-correlation with symmetric zero padding; a last row that no window fits is left out.

    Each of `groups` reads an equal share of the inputs, in their order, and makes one of the outputs; as many
    as there are inputs: a depthwise convolution.
    """

    inputs: int
    outputs: int
    kernel: int
    padding: int = 0
    stride: int = 1
    bias: bool = True
    groups: int = 1


@dataclass(frozen=True, slots=True)
class BatchNorm2d:
    """y = weight (x - mean) / sqrt(var + epsilon) + bias, per channel.

    In training, mean and population variance of this rank's part of the batch; in prediction,
    the running ones: running += momentum (new - running), where the new variance is the sample
    variance (divided by n - 1). Both conventions are torch's.
    """

    channels: int
    momentum: float = 0.1
    epsilon: float = 1e-5


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """y = (x - mean) / sqrt(var + epsilon), over the features of each sample; the variance is the population's. No parameters."""

    features: int
    epsilon: float = 1e-5


@dataclass(frozen=True, slots=True)
class MaxPool2d:
    """Maximum over windows of `size`; `stride` 0 means `size`. Padding never wins."""

    size: int
    stride: int = 0
    padding: int = 0

    @property
    def step(self) -> int:
        """Distance between windows."""
        return self.stride or self.size


@dataclass(frozen=True, slots=True)
class GlobalAveragePool:
    """Mean over height and width: (C, H, W) becomes (C,)."""


@dataclass(frozen=True, slots=True)
class ReLU:
    """max(x, 0)."""


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """1 / (1 + exp(-x))."""


@dataclass(frozen=True, slots=True)
class Flatten:
    """All axes but the first into one, channels first."""


@dataclass(frozen=True, slots=True)
class Residual:
    """body(x) + shortcut(x); an empty shortcut is the identity."""

    body: tuple[Layer, ...]
    shortcut: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class Branches:
    """Images that all branches make of the same input, joined along channels; an empty branch is the input."""

    branches: tuple[tuple[Layer, ...], ...]


Layer = (
    Linear
    | Conv2d
    | BatchNorm2d
    | LayerNorm
    | MaxPool2d
    | GlobalAveragePool
    | ReLU
    | Sigmoid
    | Flatten
    | Residual
    | Branches
)


def inner(layer: Layer) -> dict[str, tuple[Layer, ...]]:
    """Return the lists of layers inside a layer, by their part of the names of its arrays; most have none."""
    match layer:
        case Residual(body, shortcut):
            return {"body": body, "shortcut": shortcut}
        case Branches(branches):
            return {str(number): branch for number, branch in enumerate(branches)}
    return {}


@dataclass(frozen=True, slots=True)
class Weight:
    """One array of a model. `trained` is False for the running statistics of a batch norm."""

    name: str
    shape: Shape
    trained: bool = True


@dataclass(frozen=True, slots=True)
class Placed:
    """A layer with its name, and the shapes of one sample before and after it."""

    name: str
    layer: Layer
    before: Shape
    after: Shape


def _windows(size: int, kernel: int, padding: int, stride: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def _after(layer: Layer, shape: Shape, name: str) -> Shape:
    match layer:
        case Linear(inputs, outputs) if shape == (inputs,):
            return (outputs,)
        case Conv2d(inputs, outputs, kernel, padding, stride) if (
            len(shape) == 3
            and shape[0] == inputs
            and min(shape[1:]) + 2 * padding >= kernel
            and layer.groups > 0
            and inputs % layer.groups == outputs % layer.groups == 0
        ):
            return (outputs, *(_windows(size, kernel, padding, stride) for size in shape[1:]))
        case MaxPool2d(size, stride, padding) if (
            len(shape) == 3
            and min(shape[1:]) + 2 * padding >= size
            and (stride or shape[1] % size == shape[2] % size == 0)
        ):
            return (shape[0], *(_windows(s, size, padding, layer.step) for s in shape[1:]))
        case BatchNorm2d(channels) if len(shape) == 3 and shape[0] == channels:
            return shape
        case LayerNorm(features) if shape == (features,):
            return shape
        case GlobalAveragePool() if len(shape) == 3:
            return shape[:1]
        case ReLU() | Sigmoid():
            return shape
        case Flatten():
            return (prod(shape),)
        case Residual(body, shortcut):
            ends = [shapes(part, shape)[-1] for part in (body, shortcut)]
            if ends[0] == ends[1]:
                return ends[0]
            raise ValueError(f"layer {name}: its body ends in {ends[0]}, its shortcut in {ends[1]}")
        case Branches(branches) if branches and len(shape) == 3:
            ends = [shapes(branch, shape)[-1] for branch in branches]
            if all(len(end) == 3 and end[1:] == ends[0][1:] for end in ends):
                return (sum(end[0] for end in ends), *ends[0][1:])
            raise ValueError(
                f"layer {name}: its branches end in {', '.join(map(str, ends))}, not in images of one size"
            )
    raise ValueError(f"layer {name} {layer} does not take samples of shape {shape}")


def shapes(layers: tuple[Layer, ...], sample: Shape) -> list[Shape]:
    """Return the shape of one sample before the first layer and after each one.

    Raises ValueError naming the layer whose input does not fit.
    """
    result = [sample]
    for index, layer in enumerate(layers):
        result.append(_after(layer, result[-1], str(index)))
    return result


def walk(layers: tuple[Layer, ...], sample: Shape, prefix: str = "") -> Iterator[Placed]:
    """Yield every layer, those inside another one before it, in the order they compute."""
    for index, layer in enumerate(layers):
        name = f"{prefix}{index}"
        after = _after(layer, sample, name)
        for part, chain in inner(layer).items():
            yield from walk(chain, sample, f"{name}.{part}.")
        yield Placed(name, layer, sample, after)
        sample = after


def weight_shapes(layers: tuple[Layer, ...], prefix: str = "") -> list[Weight]:
    """Return all arrays of the model, in the order in which it computes."""
    weights: list[Weight] = []
    for index, layer in enumerate(layers):
        name = f"{prefix}{index}."
        match layer:
            case Linear(inputs, outputs):
                weights += [Weight(f"{name}weight", (outputs, inputs)), Weight(f"{name}bias", (outputs,))]
            case Conv2d(inputs, outputs, kernel):
                weights.append(Weight(f"{name}weight", (outputs, inputs // layer.groups, kernel, kernel)))
                weights += [Weight(f"{name}bias", (outputs,))] if layer.bias else []
            case BatchNorm2d(channels):
                weights += [Weight(f"{name}{part}", (channels,)) for part in ("weight", "bias")]
                weights += [
                    Weight(f"{name}{part}", (channels,), trained=False) for part in ("running_mean", "running_var")
                ]
            case _:
                for part, chain in inner(layer).items():
                    weights += weight_shapes(chain, f"{name}{part}.")
    return weights


def is_statistic(name: str) -> bool:
    """Whether a weight's name is one of those that are not trained."""
    return name.rpartition(".")[2] in ("running_mean", "running_var")


def has_batch_norm(layers: tuple[Layer, ...]) -> bool:
    """Whether the result depends on how a batch is cut in parts."""
    return any(not weight.trained for weight in weight_shapes(layers))


def initial_weights(layers: tuple[Layer, ...], seed: int) -> dict[str, np.ndarray]:
    """Draw float64 weights from one seed for all frameworks.

    Linear and convolution: uniform in +-1/sqrt(fan_in), weight and bias. Batch norm: weight 1,
    bias 0, running mean 0, running variance 1.
    """
    generator = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}
    limit = 0.0
    norms = _norm_names(layers)
    for weight in weight_shapes(layers):
        place, _, part = weight.name.rpartition(".")
        if place in norms:
            fill = 1.0 if part in ("weight", "running_var") else 0.0
            weights[weight.name] = np.full(weight.shape, fill)
            continue
        if part == "weight":
            limit = 1.0 / np.sqrt(prod(weight.shape[1:]))
        weights[weight.name] = generator.uniform(-limit, limit, weight.shape)
    return weights


def _norm_names(layers: tuple[Layer, ...]) -> set[str]:
    return {w.name.rpartition(".")[0] for w in weight_shapes(layers) if not w.trained}
