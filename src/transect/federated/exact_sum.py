"""Weighted sums without rounding: no bit depends on the order of clients, or on which rank adds which.

Each number is rounded to a multiple of 2^-52, half to even. Then all is whole numbers, so that any program with integers
of 64 bits comes to the same bits: hi 2^-26 + lo 2^-52 is the sum, with hi and lo in int64. The mean is the nearest
multiple of 2^-52, half to even, and rounded to float64 from 2 on. It is off by 2^-52 at most below 2 (each of the two
roundings by 2^-53), which is less than the last place of a weight of 1 in float32 by a factor of 10^8.

Why nothing overflows: `add` splits a number x below 2^10 into whole a 2^0 + b 2^-26 + c 2^-52 with |a| <= 2^10 and
|b|, |c| <= 2^25. Weights W <= 2^26 in all keep |sum of w b| <= 2^51 < 2^53, so products and sums of the parts are exact
in float64 in whatever order; |hi| <= (2^36 + 2^25) W <= 2^62 + 2^51 < 2^63, and |lo| <= 2^51.
"""

from __future__ import annotations

import numpy as np

from transect.domain.errors import WrongResult

__all__ = ["LIMIT", "MAX_WEIGHT", "ExactSum", "exact_mean", "refuse_unusable"]

# No number of an update may be as large, and all weights of a sum together may not be larger.
LIMIT = 2.0**10
MAX_WEIGHT = 2**26
_PART = 26
# Rows and numbers that are split at a time: the parts stay in a core's cache, and BLAS starts no threads for so few.
_ROWS, _NUMBERS = 256, 2**14


def refuse_unusable(vectors: np.ndarray, what: str = "a client's update") -> None:
    """Raise WrongResult where a number of `what` is not finite, or not below `LIMIT`."""
    # A NaN is neither.
    if vectors.size and not (vectors.min() > -LIMIT and vectors.max() < LIMIT):
        raise WrongResult(f"{what} has a number that is not finite, or not below {LIMIT:g}")


class ExactSum:
    """The sum of weighted vectors of `size` numbers, of their weights, and how many they are.

    Sums of several ranks are added by adding their `parts`.
    """

    def __init__(self, size: int) -> None:
        # hi and lo; the last of hi is the sum of weights, of lo the number of vectors: one message has it all.
        self.parts = np.zeros((2, size + 1), np.int64)

    def add(self, vectors: np.ndarray, weights: np.ndarray) -> None:
        """Add float64 (n, size), each times its weight, whole numbers (n,) from 0 on.

        Raises WrongResult for what `refuse_unusable` refuses, and for too large a sum of weights; nothing is added then.
        """
        refuse_unusable(vectors)
        if (count := len(vectors)) == 0:
            return
        # Each is looked at before the sum, which might overflow.
        if weights.dtype.kind not in "iu" or not 0 <= weights.min() <= weights.max() <= MAX_WEIGHT:
            raise WrongResult(f"an update's weight: expected a whole number from 0 to {MAX_WEIGHT}, got {weights}")
        _refuse_weight(self.weight + int(weights.sum()))
        size = self.parts.shape[1] - 1
        width = max(1, _NUMBERS // min(count, _ROWS))
        for row in range(0, count, _ROWS):
            factors = weights[row : row + _ROWS].astype(np.float64)
            for start in range(0, size, width):
                place = slice(start, min(start + width, size))
                self._add(vectors[row : row + _ROWS, place], factors, place)
        self.parts[:, -1] += int(weights.sum()), count

    def _add(self, block: np.ndarray, factors: np.ndarray, place: slice) -> None:
        whole = np.rint(block)
        rest = block - whole
        high, low = self.parts[:, place]
        high += (factors @ whole).astype(np.int64) << _PART
        rest *= 2.0**_PART
        np.rint(rest, out=whole)
        high += (factors @ whole).astype(np.int64)
        rest -= whole
        rest *= 2.0**_PART
        np.rint(rest, out=rest)
        low += (factors @ rest).astype(np.int64)

    @property
    def weight(self) -> int:
        """The sum of the weights."""
        return int(self.parts[0, -1])

    @property
    def count(self) -> int:
        """How many vectors were added."""
        return int(self.parts[1, -1])

    def mean(self, divisor: int) -> np.ndarray:
        """Return the sum over a `divisor`, float64 (size,), which is `weight` or more; zeros where all weights are 0.

        Raises WrongResult for another one, and where the sums of ranks have too large a weight.
        """
        _refuse_weight(divisor)
        if divisor < self.weight:
            raise WrongResult(
                f"a mean's divisor: expected {self.weight} or more, the sum of the weights, got {divisor}"
            )
        mean = np.empty(self.parts.shape[1] - 1)
        for start in range(0, len(mean), _NUMBERS):
            end = min(start + _NUMBERS, len(mean))
            high, low = self.parts[:, start:end]
            mean[start:end] = _quotient(high, low, max(divisor, 1))
        mean *= 2.0 ** (-2 * _PART)
        return mean


def _quotient(high: np.ndarray, low: np.ndarray, divisor: int) -> np.ndarray:
    """Return (high 2^26 + low) / divisor to the nearest whole number, half to even: long division by digits of 26 bits."""
    # `>>` and `//` go down, also below 0: what is left is never negative.
    first, left = np.divmod(high + (low >> _PART), divisor)
    second, left = np.divmod((left << _PART) | (low & (2**_PART - 1)), divisor)
    quotient = (first << _PART) + second
    return np.asarray(quotient + ((2 * left > divisor) | ((2 * left == divisor) & (quotient & 1 == 1))))


def _refuse_weight(weight: int) -> None:
    if not 0 <= weight <= MAX_WEIGHT:
        raise WrongResult(f"the weights of a round's updates sum to {weight}: expected 0 to {MAX_WEIGHT}")


def exact_mean(vectors: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the mean of float64 (n, d), float64 (d,), weighted by whole numbers (n,) or equally."""
    total = ExactSum(vectors.shape[1])
    total.add(vectors, np.ones(len(vectors), np.int64) if weights is None else weights)
    return total.mean(total.weight)
