"""Order statistics of small samples: median, rank-based interval, noise floor, effect size.

No normal distribution is assumed anywhere. The rules are those of Hoefler and Belli,
"Scientific benchmarking of parallel computing systems", SC'15: costs are averaged
arithmetically, rates harmonically, ratios never; an interval needs more than five values.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from scipy.stats import binom

from transect.domain.until import MARGIN
from transect.stats.noise import Noise, paired_noise, pooled_noise

# The smallest sample whose extremes cover the median with 95 % confidence is 6.
MIN_INTERVAL_VALUES = 6

# The shares of A/A pairs that are closer than the floor, its `upper` and its `often`.
_HIGH, _UPPER, _OFTEN = 0.95, 0.75, 0.6


class Spread(StrEnum):
    """What the low and high ends of a summary are."""

    INTERVAL = "interval"
    RANGE = "range"
    SINGLE = "single"


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Median of `count` values with its ends, all in the unit of the values.

    `spread` says what the ends are: a rank-based confidence interval of the `level` that it reaches, the range of two
    to five values, or nothing but the single value.
    """

    count: int
    median: float
    low: float
    high: float
    spread: Spread
    level: float

    @property
    def word(self) -> str:
        """Name the ends in words, with their true level: `96.9 % interval`, `range` or `one run`."""
        if self.spread is Spread.INTERVAL:
            return f"{100 * self.level:.3g} % interval"
        return "range" if self.spread is Spread.RANGE else "one run"


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseFloor:
    """The largest ratio that repeats of one cell show between each other, less one.

    `relative` is a share (0.04 is 4 %), `pairs` the number of A/A pairs behind it. `noise` is what their repeats say of the spread
    of each, and `upper` the ratio that a quarter of the pairs exceeds, less one, `often` that which two fifths do; within
    `margin` two cells are the same.
    """

    relative: float
    pairs: int
    noise: Noise | None = None
    upper: float = 0.0
    often: float = 0.0
    margin: float = MARGIN


def rank_interval(values: Sequence[float]) -> tuple[float, float, float] | None:
    """95 % confidence interval of the median from order statistics, and the level it reaches.

    The ends are the k-th smallest and k-th largest value with the largest k whose exact
    binomial coverage is at least 95 % (Le Boudec, "Performance evaluation of computer
    and communication systems", section 2.2). Returns None when no k covers, that is for fewer
    than six values at 95 %.

    >>> rank_interval([1, 2, 3, 4, 5]) is None
    True
    >>> rank_interval([6, 1, 5, 2, 4, 3])
    (1, 6, 0.96875)
    """
    ordered = sorted(values)
    rank = _rank(len(ordered))
    return None if rank is None else (ordered[rank[0] - 1], ordered[-rank[0]], rank[1])


@lru_cache(maxsize=4096)
def _rank(count: int) -> tuple[int, float] | None:
    """Return k and the level reached by the k-th smallest and k-th largest of `count` values."""
    tail = (1 - 0.95) / 2
    smallest = int(binom.ppf(tail, count, 0.5))
    # The largest k of which less than the tail lies below.
    k = smallest + 1 if binom.cdf(smallest, count, 0.5) <= tail else smallest
    return (k, round(float(1 - 2 * binom.cdf(k - 1, count, 0.5)), 12)) if k > 0 else None


def summarise(values: Iterable[float]) -> Summary | None:
    """Median with a rank-based interval (six values or more) or the range. None for no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    interval = rank_interval(ordered)
    low, high, level = interval or (ordered[0], ordered[-1], 1.0)
    spread = Spread.INTERVAL if interval else Spread.RANGE if len(ordered) > 1 else Spread.SINGLE
    median = statistics.median(ordered)
    return Summary(count=len(ordered), median=median, low=low, high=high, spread=spread, level=level)


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest-rank quantile: an observed value, never an interpolated one. Needs one value."""
    return float(np.quantile(np.asarray(values, dtype=float), share, method="inverted_cdf"))


def noise_floor(groups: Iterable[Sequence[float]], *, margin: float = MARGIN) -> NoiseFloor | None:
    """A/A noise: a high quantile of the ratios between repeats of one and the same cell.

    All pairs within each group are taken; values of zero or less give no ratio. With few pairs
    the quantile is the largest ratio. Returns None when no group holds two values.
    """
    groups = list(groups)
    ratios = [abs(math.log(x / y)) for group in groups for x, y in itertools.combinations(filter(_has_log, group), 2)]
    return _floor(ratios, pooled_noise(groups), margin)


def paired_noise_floor(groups: Iterable[Mapping[int, float]], *, margin: float = MARGIN) -> NoiseFloor | None:
    """Noise of a metric whose repeats differ by design: values by repeat, one mapping per group.

    Repeat i has the same start in every group, so what two repeats differ by in all groups is no
    noise: their log ratio is taken less its median over the groups. A pair of repeats that fewer
    than three groups have is left as it is. Returns None when no group holds two values.
    """
    groups = list(groups)
    ratios: dict[tuple[int, int], list[float]] = defaultdict(list)
    for group in groups:
        positive = {n: v for n, v in sorted(group.items()) if _has_log(v)}
        for (i, x), (j, y) in itertools.combinations(positive.items(), 2):
            ratios[i, j].append(math.log(x / y))
    left: list[float] = []
    for of_pair in ratios.values():
        many = len(of_pair) > 2
        middle = statistics.median(of_pair) if many else 0.0
        # Taking the middle out of n values makes them look closer than they are.
        widen = math.sqrt(len(of_pair) / (len(of_pair) - 1)) if many else 1.0
        left += [widen * abs(ratio - middle) for ratio in of_pair]
    return _floor(left, paired_noise(groups), margin)


def _has_log(value: float) -> bool:
    return value > 0 and math.isfinite(value)


def _floor(ratios: Sequence[float], noise: Noise | None, margin: float) -> NoiseFloor | None:
    if not ratios:
        return None
    relative, upper, often = (math.expm1(quantile(ratios, share)) for share in (_HIGH, _UPPER, _OFTEN))
    return NoiseFloor(relative=relative, pairs=len(ratios), noise=noise, upper=upper, often=often, margin=margin)
