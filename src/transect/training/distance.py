"""How far weights are from those that were expected."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def weights_distance(given: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> float:
    """Return the relative Euclidean distance of all weights, running statistics included."""
    difference = sum(float(np.square(given[n] - expected[n]).sum()) for n in expected)
    size = sum(float(np.square(array).sum()) for array in expected.values())
    return float(np.sqrt(difference / size))
