"""Weights and samples for frameworks that compute with channels last (NHWC), in plain numpy.

Neutral and native layouts: convolution OIHW and HWIO; linear (out, in) and (in, out). `Flatten` of
(C, H, W) gives features in the order C, H, W in the neutral world and H, W, C in the native one, so
the rows of the linear layer that reads them are permuted. All other arrays are the same in both.
Layers may end in flattened features, as a part of a model does: `order_at_end` says in which order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from transect.training.layers import Conv2d, Flatten, Layer, Linear, Residual, Shape, shapes, walk, weight_shapes


@dataclass(frozen=True, slots=True)
class _Move:
    """native = neutral.reshape(split).transpose(axes).reshape(native), and the way back."""

    neutral: Shape
    split: Shape
    axes: Shape
    native: Shape


def _readers(
    layers: tuple[Layer, ...], sample: Shape, order: Shape | None, prefix: str = ""
) -> tuple[dict[str, Shape], Shape | None]:
    """Return the (C, H, W) that linear layers read flattened, by name, and the one at the end.

    `order` is the (C, H, W) whose flattened features are the input, or None.
    """
    orders: dict[str, Shape] = {}
    places = zip(layers, shapes(layers, sample), strict=False)
    for index, (layer, before) in enumerate(places):
        name = f"{prefix}{index}"
        match layer:
            case Flatten() if len(before) == 3 and before[0] > 1 and prod(before[1:]) > 1:
                order = before
            case Linear():
                if order is not None:
                    orders[name] = order
                order = None
            case Residual(body, shortcut):
                parts = [
                    _readers(part, before, order, f"{name}.{which}.")
                    for part, which in ((body, "body"), (shortcut, "shortcut"))
                ]
                ends = [end for _, end in parts]
                if ends[0] != ends[1]:
                    raise ValueError(
                        f"layer {name}: its body and its shortcut order flattened features "
                        f"differently with channels last ({ends[0]} and {ends[1]})"
                    )
                order = ends[0]
                for names, _ in parts:
                    orders |= names
    return orders, order


def order_at_end(layers: tuple[Layer, ...], sample: Shape) -> Shape | None:
    """Return the (C, H, W) whose flattened features the layers end in, or None."""
    return _readers(layers, sample, None)[1]


def _moves(layers: tuple[Layer, ...], sample: Shape) -> dict[str, _Move]:
    """Return how each array of the model changes, in the order of `weight_shapes`."""
    readers, _ = _readers(layers, sample, None)
    kinds = {placed.name: placed.layer for placed in walk(layers, sample)}
    moves: dict[str, _Move] = {}
    for weight in weight_shapes(layers):
        place, _, part = weight.name.rpartition(".")
        split, axes, native = weight.shape, tuple(range(len(weight.shape))), weight.shape
        if part == "weight" and isinstance(kinds[place], Conv2d):
            axes = (2, 3, 1, 0)
            native = tuple(split[axis] for axis in axes)
        elif part == "weight" and isinstance(kinds[place], Linear):
            outputs, inputs = weight.shape
            axes, native = (1, 0), (inputs, outputs)
            if place in readers:
                split, axes = (outputs, *readers[place]), (2, 3, 1, 0)
        moves[weight.name] = _Move(weight.shape, split, axes, native)
    return moves


def to_native(weights: dict[str, np.ndarray], layers: tuple[Layer, ...], sample: Shape) -> dict[str, np.ndarray]:
    """Return contiguous copies with channels last, of the same dtypes, in `weight_shapes`' order.

    `weights` may be a part of the model's arrays, e.g. the gradients.
    """
    return {
        name: weights[name].reshape(move.split).transpose(move.axes).reshape(move.native).copy()
        for name, move in _moves(layers, sample).items()
        if name in weights
    }


def to_neutral(weights: dict[str, np.ndarray], layers: tuple[Layer, ...], sample: Shape) -> dict[str, np.ndarray]:
    """Return contiguous copies in the neutral layout: the exact inverse of `to_native`."""
    result: dict[str, np.ndarray] = {}
    for name, move in _moves(layers, sample).items():
        if name in weights:
            moved = weights[name].reshape([move.split[axis] for axis in move.axes])
            result[name] = moved.transpose(np.argsort(move.axes)).reshape(move.neutral).copy()
    return result


def samples_last(x: np.ndarray) -> np.ndarray:
    """Turn samples (n, C, H, W) into (n, H, W, C), contiguous; others stay as they are."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if x.ndim == 4 else x


def samples_first(x: np.ndarray) -> np.ndarray:
    """Undo `samples_last`."""
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if x.ndim == 4 else x
