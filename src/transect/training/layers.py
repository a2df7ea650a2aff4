"""A framework-neutral description of a model: every framework builds its own from it.

Layouts: inputs NCHW, `Linear` weight (out, in), `Conv2d` weight (out, in, kernel, kernel).
Parameters are named `INDEX.weight` and `INDEX.bias`, as in a torch `Sequential`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

__all__ = [
    "Conv2d",
    "Flatten",
    "Layer",
    "Linear",
    "MaxPool2d",
    "ReLU",
    "Shape",
    "Sigmoid",
    "forward_flops",
    "initial_weights",
    "shapes",
]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Linear:
    """y = x W^T + b."""

    inputs: int
    outputs: int


@dataclass(frozen=True, slots=True)
class Conv2d:
    """Cross-correlation with stride 1 and symmetric zero padding."""

    inputs: int
    outputs: int
    kernel: int
    padding: int = 0


@dataclass(frozen=True, slots=True)
class MaxPool2d:
    """Maximum over non-overlapping windows; the size must divide height and width."""

    size: int


@dataclass(frozen=True, slots=True)
class ReLU:
    """max(x, 0)."""


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """1 / (1 + exp(-x))."""


@dataclass(frozen=True, slots=True)
class Flatten:
    """All axes but the first into one."""


Layer = Linear | Conv2d | MaxPool2d | ReLU | Sigmoid | Flatten


def shapes(layers: tuple[Layer, ...], sample: Shape) -> list[Shape]:
    """Return the shape of one sample before the first layer and after each one.

    Raises ValueError naming the layer whose input does not fit.
    """
    result = [sample]
    for index, layer in enumerate(layers):
        shape = result[-1]
        match layer:
            case Linear(inputs, outputs) if shape == (inputs,):
                result.append((outputs,))
            case Conv2d(inputs, outputs, kernel, padding) if len(shape) == 3 and shape[0] == inputs:
                grow = 2 * padding - kernel + 1
                result.append((outputs, shape[1] + grow, shape[2] + grow))
            case MaxPool2d(size) if len(shape) == 3 and shape[1] % size == shape[2] % size == 0:
                result.append((shape[0], shape[1] // size, shape[2] // size))
            case ReLU() | Sigmoid():
                result.append(shape)
            case Flatten():
                result.append((prod(shape),))
            case _:
                raise ValueError(f"layer {index} {layer} does not take samples of shape {shape}")
    return result


def initial_weights(layers: tuple[Layer, ...], seed: int) -> dict[str, np.ndarray]:
    """Draw float64 weights, uniform in +-1/sqrt(fan_in), from one seed for all frameworks."""
    generator = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}
    for index, layer in enumerate(layers):
        match layer:
            case Linear(inputs, outputs):
                shape: Shape = (outputs, inputs)
            case Conv2d(inputs, outputs, kernel):
                shape = (outputs, inputs, kernel, kernel)
            case _:
                continue
        limit = 1.0 / np.sqrt(prod(shape[1:]))
        weights[f"{index}.weight"] = generator.uniform(-limit, limit, shape)
        weights[f"{index}.bias"] = generator.uniform(-limit, limit, shape[0])
    return weights


def forward_flops(layers: tuple[Layer, ...], sample: Shape) -> int:
    """Count the multiplications and additions of one sample's forward pass.

    Linear and convolution count two per weight use; activations and pooling count one
    per element read. The bias counts one per output.
    """
    total = 0
    sizes = shapes(layers, sample)
    for layer, before, after in zip(layers, sizes, sizes[1:], strict=False):
        match layer:
            case Linear(inputs, outputs):
                total += 2 * inputs * outputs + outputs
            case Conv2d(inputs, _, kernel):
                total += prod(after) * (2 * inputs * kernel * kernel + 1)
            case Flatten():
                pass
            case _:
                total += prod(before)
    return total
