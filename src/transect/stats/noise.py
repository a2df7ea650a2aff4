"""The noise of a kind of cell, from all of its repeats, and where the middle of a few lies.

Three runs a side say little about their own spread, but all repeats of a kind together say what
noise there is. A group's variance is therefore moderated: it counts beside a prior that is fitted
to all groups of the kind, with as many degrees of freedom as their variances agree (Smyth, "Linear
models and empirical Bayes methods", Statistical Applications in Genetics 3, 2004). Where cells are
equally noisy a group of three gains tens of degrees; where they are not it keeps its own two.

Values count by their logarithms. From five on, the lowest and highest fifth are trimmed (Wilcox,
"Introduction to robust estimation and hypothesis testing", 2012) and the variance is that of Yuen ("The
two-sample trimmed t", Biometrika 61, 1974): one run in six that somebody else disturbed then decides nothing.

Plain lists, and no more of scipy than its special functions: the runner of a block asks here too.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import chdtri, digamma, polygamma

# One in so many is trimmed at either end, and none of fewer.
_TRIMMED_OF = 5
# How unlike the cells of a kind are is itself known from few of them, and more often taken for less than for more:
# so many of all kinds are less unlike than they count.
_DOUBT = 0.5
# A variance below this share of the groups' median is a clock's step or a coincidence.
_MIN_SHARE = 1e-4
# A prior is fitted to the variances of at least this many groups.
_MIN_GROUPS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """The variance of one run's logarithm in cells of a kind, and how far to trust it.

    `freedom` counts as degrees of freedom beside a group's own: 0 where groups are too few or too
    unlike to tell anything of each other.
    """

    variance: float
    freedom: float


@dataclass(frozen=True, slots=True)
class Location:
    """A trimmed mean of logarithms: `variance` is that of one value, on `freedom` degrees."""

    centre: float
    variance: float
    freedom: float
    count: int


def trimmed(count: int) -> int:
    """Return how many of so many values are trimmed at either end.

    >>> [trimmed(count) for count in (4, 5, 9, 10)]
    [0, 1, 1, 2]
    """
    return count // _TRIMMED_OF


def location(logs: Sequence[float], *, trim: bool = True) -> Location:
    """Return the trimmed mean of one logarithm or more, with its variance; not `trim`: the mean."""
    ordered = sorted(logs)
    count = len(ordered)
    cut = trimmed(count) if trim else 0
    kept = ordered[cut : count - cut]
    if len(kept) < 2:
        return Location(statistics.fmean(kept), 0.0, 0.0, count)
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    middle = statistics.fmean(winsorised)
    squares = sum((value - middle) ** 2 for value in winsorised)
    # Yuen's variance of the trimmed mean, times the number of values.
    variance = squares / (len(kept) - 1) / len(kept) * count
    return Location(statistics.fmean(kept), variance, len(kept) - 1.0, count)


def middle(values: Sequence[float]) -> float:
    """Return the trimmed geometric mean of one value or more: what verdicts compare, and cells are ranked by.

    The median where a value has no logarithm.

    >>> middle([1.0, 4.0]), middle([0.0, 1.0, 5.0])
    (2.0, 1.0)
    """
    logs = logs_of(values)
    if len(logs) < len(values):
        return statistics.median(values)
    return math.exp(location(logs).centre)


def logs_of(values: Iterable[float]) -> list[float]:
    """Return the logarithms of those that have one."""
    return [math.log(value) for value in values if value > 0 and math.isfinite(value)]


def pooled_noise(groups: Iterable[Sequence[float]]) -> Noise | None:
    """Fit the prior to repeats of each cell. None when no group holds two positive values."""
    return fit([location(logs) for group in groups if len(logs := logs_of(group)) > 1])


def paired_noise(groups: Iterable[Mapping[int, float]]) -> Noise | None:
    """Fit the prior to values by repeat, less what a repeat does to all groups alike.

    Repeat i has one seed, or one moment, in every group: what more than two groups share in it is
    taken out. None when no group holds two positive values.
    """
    centred = []
    for group in groups:
        logs = {n: math.log(v) for n, v in group.items() if v > 0 and math.isfinite(v)}
        if len(logs) > 1:
            middle = statistics.fmean(logs.values())
            centred.append({n: value - middle for n, value in logs.items()})
    of_repeat: dict[int, list[float]] = defaultdict(list)
    for group in centred:
        for repeat, value in group.items():
            of_repeat[repeat].append(value)
    shared = {n: statistics.median(v) for n, v in of_repeat.items() if len(v) > 2}
    # Taking the middle out of n values makes them look closer than they are.
    widen = {n: math.sqrt(len(v) / (len(v) - 1)) for n, v in of_repeat.items() if len(v) > 2}
    left = [[widen.get(n, 1.0) * (value - shared.get(n, 0.0)) for n, value in group.items()] for group in centred]
    return fit([location(group) for group in left])


def fit(groups: Sequence[Location], alike: float = 0.0) -> Noise | None:
    """Fit a scaled F distribution to the variances by the moments of their logarithms.

    `alike`: the mean correlation of two of the variances, as of ratios that share a base: together they tell less, and
    look more alike than they are.
    """
    known = [group for group in groups if group.freedom > 0]
    if not known:
        return None
    total = sum(group.freedom for group in known) / (1 + (len(known) - 1) * alike)
    middle = statistics.median(group.variance for group in known)
    if middle <= 0:
        middle = max(group.variance for group in known)
    pooled = sum(g.freedom * g.variance for g in known) / sum(g.freedom for g in known)
    if len(known) < _MIN_GROUPS or middle <= 0:
        return Noise(variance=pooled, freedom=0.0)
    halves = [group.freedom / 2 for group in known]
    logs = [
        math.log(max(group.variance, _MIN_SHARE * middle)) - _digamma(half) + math.log(half)
        for group, half in zip(known, halves, strict=True)
    ]
    spread = statistics.variance(logs) / (1 - alike) * (len(logs) - 1) / float(chdtri(len(logs) - 1, _DOUBT))
    unlike = spread - statistics.fmean(map(_trigamma, halves))
    if unlike <= 0:
        return Noise(variance=pooled, freedom=total)
    half = _inverse_trigamma(unlike)
    variance = math.exp(statistics.fmean(logs) + _digamma(half) - math.log(half))
    return Noise(variance=variance, freedom=min(2 * half, total))


@lru_cache
def _digamma(x: float) -> float:
    return float(digamma(x))


@lru_cache
def _trigamma(x: float) -> float:
    return float(polygamma(1, x))


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method (Smyth 2004, appendix)."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = _trigamma(x)
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-9:
            break
    return x


def moderated(location: Location, noise: Noise | None, times: float = 1.0) -> tuple[float, float]:
    """Return the variance of a location and its degrees of freedom; `times`: of the prior."""
    prior, weight = (noise.variance * times, noise.freedom) if noise else (0.0, 0.0)
    freedom = weight + location.freedom
    if freedom <= 0:
        return math.inf, 1.0
    pooled = (weight * prior + location.freedom * location.variance) / freedom
    return pooled / location.count, freedom
