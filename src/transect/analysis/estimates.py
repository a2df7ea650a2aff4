"""How many times one set of values exceeds another, or by how much, with an interval.

The estimate is that of Hodges and Lehmann ("Estimates of location based on rank tests", Annals of
Mathematical Statistics 34, 1963): the median over all pairs of a value of one side and a value of
the other. Its interval holds what the Mann-Whitney test does not reject, so both say the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from transect.analysis.statistics import EXACT_LIMIT, MIN_INTERVAL_VALUES, Spread

__all__ = ["Estimate", "difference_of", "ratio_of"]

# The 97.5 % point of the normal distribution.
_Z = 1.959963985


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A ratio, or a difference in the unit of the values, and its ends.

    `spread` says what the ends are: a 95 % interval from six values a side on, the range of all
    pairs for fewer, or nothing but the value itself for one a side.
    """

    value: float
    low: float
    high: float
    spread: Spread

    @property
    def word(self) -> str:
        """Name the ends in words: `95 % interval`, `range` or `one run a side`."""
        if self.spread is Spread.INTERVAL:
            return "95 % interval"
        return "range" if self.spread is Spread.RANGE else "one run a side"


def ratio_of(a: Sequence[float], b: Sequence[float]) -> Estimate | None:
    """Estimate how many times b the values of a are; None when a side is empty or not positive.

    >>> ratio_of([2.0, 2.2, 2.1], [1.0, 1.0])
    Estimate(value=2.1, low=2.0, high=2.2, spread=<Spread.RANGE: 'range'>)
    """
    if min(a, default=0.0) <= 0 or min(b, default=0.0) <= 0:
        return None
    return _estimate(a, b, lambda x, y: x / y)


def difference_of(a: Sequence[float], b: Sequence[float]) -> Estimate | None:
    """Estimate by how much the values of a exceed those of b; None when a side is empty."""
    return _estimate(a, b, lambda x, y: x - y) if a and b else None


def _estimate(
    a: Sequence[float], b: Sequence[float], join: Callable[[float, float], float]
) -> Estimate:
    pairs = sorted(join(x, y) for x in a for y in b)
    middle = statistics.median(pairs)
    if len(pairs) == 1:
        return Estimate(value=middle, low=middle, high=middle, spread=Spread.SINGLE)
    few = min(len(a), len(b)) < MIN_INTERVAL_VALUES
    rank = 1 if few else _rank(*sorted((len(a), len(b))))
    return Estimate(
        value=middle, low=pairs[rank - 1], high=pairs[-rank],
        spread=Spread.RANGE if few else Spread.INTERVAL,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _rank(n: int, m: int) -> int:
    """Return which of the n m ordered pairs, from either end, is an end of the 95 % interval.

    One more than the largest U at which the Mann-Whitney test rejects (Moses' interval): exactly
    up to the number of values to which the test is exact, else from the normal distribution.
    """
    if n + m > EXACT_LIMIT:
        spread = math.sqrt(n * m * (n + m + 1) / 12)
        return max(1, math.floor(n * m / 2 - _Z * spread))
    # Orders by U: the Gaussian binomial coefficient, a product of (1 - q^(m+i)) / (1 - q^i).
    orders = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for place in range(n * m, m + i - 1, -1):
            orders[place] -= orders[place - m - i]
        for place in range(i, n * m + 1):
            orders[place] += orders[place - i]
    tail, below = 0.025 * math.comb(n + m, n), 0
    for place, amount in enumerate(orders):
        below += amount
        if below > tail:
            return max(1, place)
    raise ValueError(f"no interval for {n} and {m} values")
