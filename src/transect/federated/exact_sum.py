"""Weighted sums without rounding: no bit depends on the order of clients, or on which rank adds which.

A number is brought to a multiple of 2^-52 and kept in two int64: hi 2^-26 + lo 2^-52. A mean of updates is then exact
to 2^-53, less than the last place of a weight in float32 by a factor of 10^8 or so.
"""

from __future__ import annotations

import numpy as np

from transect.domain.errors import WrongResult

# No number of an update may be as large, and all weights of a sum together may not be larger.
LIMIT = 2.0**10
MAX_WEIGHT = 2**26
_SCALE, _PART = 2.0**52, 26


class ExactSum:
    """The sum of weighted vectors of `size` numbers, and of their weights."""

    def __init__(self, size: int) -> None:
        # hi and lo; the weights' sum is the last number of each, so that one message has it all.
        self.parts = np.zeros((2, size + 1), np.int64)

    def add(self, vectors: np.ndarray, weights: np.ndarray) -> None:
        """Add float64 (n, size), each times its weight, int64 (n,) from 0 on.

        Raises WrongResult for a number that is not finite or from `LIMIT` on, and for too large a sum of weights.
        """
        if not np.abs(vectors).max(initial=0.0) < LIMIT:
            raise WrongResult(f"a client's update has a number that is not finite, or not below {LIMIT:g}")
        weights = np.asarray(weights, np.int64)
        self.parts[0, -1] += weights.sum()
        if not weights.min(initial=0) >= 0 or self.weight > MAX_WEIGHT:
            raise WrongResult(f"the weights of a round's updates sum to {self.weight}: expected 0 to {MAX_WEIGHT}")
        fixed = np.rint(vectors * _SCALE).astype(np.int64)
        high = fixed >> _PART
        self.parts[0, :-1] += weights @ high
        self.parts[1, :-1] += weights @ (fixed - (high << _PART))

    @property
    def weight(self) -> int:
        """The sum of the weights."""
        return int(self.parts[0, -1])

    def mean(self) -> np.ndarray:
        """Return the weighted mean, float64 (size,); zeros where all weights are 0."""
        high, low = self.parts[:, :-1]
        carried = high + (low >> _PART)
        rest = low & (2**_PART - 1)
        total = carried.astype(np.float64) * 2.0**-26 + rest.astype(np.float64) * 2.0**-52
        return total / max(self.weight, 1)
