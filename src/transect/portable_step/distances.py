"""How far arrays lie apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def is_finite(arrays: Mapping[str, np.ndarray]) -> bool:
    """Tell whether no array holds an infinity or what is no number."""
    return all(np.isfinite(array).all() for array in arrays.values())


def distance(found: np.ndarray, want: np.ndarray) -> float:
    """Return the largest difference; infinite for another shape, or where only one is finite."""
    if found.shape != want.shape:
        return float("inf")
    if found.dtype == want.dtype and found.dtype.kind == "f":
        # Without copies in float64: of numbers that are near to each other the difference is exact.
        with np.errstate(invalid="ignore", over="ignore"):
            far = float(np.abs(found - want).max(initial=0.0))
        if np.isfinite(far):
            return far
    found64, want64 = found.astype(np.float64), want.astype(np.float64)
    same = (found64 == want64) | (np.isnan(found64) & np.isnan(want64))
    far = float(np.abs(np.where(same, 0.0, found64 - np.where(same, found64, want64))).max(initial=0.0))
    return far if far == far else float("inf")


def distances(found: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the largest difference of each array that is wanted."""
    return {key: distance(found[key], array) for key, array in want.items()}


def say_farthest(found: np.ndarray, want: np.ndarray) -> str:
    """Say the number that is farthest off."""
    if found.shape != want.shape:
        return f"of the shape {list(found.shape)}, expected {list(want.shape)}"
    if not found.ndim:
        return f"{found.item():.6g}, expected {want.item():.6g}"
    far = np.abs(found.astype(np.float64) - want.astype(np.float64))
    place = np.unravel_index(int(np.nanargmax(np.where(np.isnan(far), np.inf, far))), far.shape)
    return f"{found[place]:.6g} at {[int(i) for i in place]}, expected {want[place]:.6g}"
