"""A model's arrays in one vector, in the order of `model.weight_shapes()`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

import numpy as np

from transect.training.models import Model


def flat_of(model: Model, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return all arrays in one vector (d,)."""
    return np.concatenate([np.asarray(arrays[weight.name]).reshape(-1) for weight in model.weight_shapes()])


def arrays_of(model: Model, flat: np.ndarray) -> dict[str, np.ndarray]:
    """Return views of a vector, by name."""
    arrays, start = {}, 0
    for weight in model.weight_shapes():
        end = start + prod(weight.shape)
        arrays[weight.name] = flat[start:end].reshape(weight.shape)
        start = end
    return arrays


def trained_part(model: Model) -> np.ndarray:
    """Return which numbers of the vector are trained, bool (d,): running statistics are not."""
    return np.concatenate([np.full(prod(weight.shape), weight.trained) for weight in model.weight_shapes()])


def named_part(model: Model, names: Collection[str]) -> np.ndarray:
    """Return which numbers of the vector are of tensors with these names, bool (d,)."""
    return np.concatenate([np.full(prod(weight.shape), weight.name in names) for weight in model.weight_shapes()])


def distances(models: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the relative Euclidean distance of each model (kept, d) to the one that was expected, (kept,)."""
    far: np.ndarray = np.linalg.norm(models - expected, axis=1) / np.linalg.norm(expected, axis=1)
    return far
