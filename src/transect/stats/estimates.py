"""How many times one set of values exceeds another, with the ends of that.

The ratio is that of the trimmed geometric means, as in every verdict (`transect.stats.verdicts`), so that what
is claimed is what was tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from transect.domain.until import MIN_RUNS
from transect.stats.noise import location, logs_of
from transect.stats.samples import Spread, summarise
from transect.stats.verdicts import LEVEL, Decision, chance_of_shift, power

# What the ratio of two sets of runs is called, and that of pairs, which are not trimmed. Of fewer than five values none is.
RATIO, RATIO_OF_PAIRS = "ratio of trimmed geometric means", "geometric mean of the ratios"


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A ratio, or what it comes to in the unit of the values, and its ends.

    `spread` says what the ends are: the interval of a verdict, the range of all pairs of values of which the noise is
    not known, or nothing but the value itself for one a side.
    """

    value: float
    low: float
    high: float
    spread: Spread
    # Of an interval.
    level: float = 0.95

    @property
    def inverse(self) -> Estimate:
        """The ratio seen from the other side: the upper end becomes the lower one."""
        value, low, high = (1 / end if end > 0 else math.inf for end in (self.value, self.high, self.low))
        return replace(self, value=value, low=low, high=high)

    @property
    def logs(self) -> tuple[float, float, float]:
        """The logarithms of value, low and high."""
        ends = (self.value, self.low, self.high)
        value, low, high = (math.log(end) if 0 < end < math.inf else math.copysign(math.inf, end - 1) for end in ends)
        return value, low, high

    def beyond(self, base: float) -> Estimate:
        """Return what a ratio to a base comes to beyond it, in the base's unit."""
        value, low, high = (base * (end - 1) for end in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high)

    @property
    def word(self) -> str:
        """Name the ends in words, with their true level: `95 % interval`, `range` or `one run a side`."""
        if self.spread is Spread.INTERVAL:
            # Two digits of what is missing to 100 %, and three in all: 98.3, 99.975.
            digits = max(3, 4 - math.ceil(math.log10(max(1 - self.level, 1e-9)) + 2))
            return f"{100 * self.level:.{digits}g} % interval"
        return "range" if self.spread is Spread.RANGE else "one run a side"


def decided_ratio(decision: Decision) -> Estimate:
    """Return the ratio that a verdict rests on, with its interval."""
    ends = {"low": decision.low, "high": decision.high}
    return Estimate(value=decision.ratio, **ends, spread=Spread.INTERVAL, level=1 - decision.level)


def shows_shift(values: Sequence[float]) -> bool:
    """Whether differences, one for each seed, show which way it goes: by the interval of their median, without 0.

    Of fewer seeds than that takes a t test has to tell too: of two seeds of nothing the range leaves out 0 half of the time.

    >>> shows_shift([0.1, 0.3]), shows_shift([0.29, 0.3, 0.31]), shows_shift([0.3, 0.3, 0.3])
    (False, True, True)
    """
    summary, chance = summarise(values), chance_of_shift(values)
    if summary is None or chance is None or summary.low <= 0 <= summary.high:
        return False
    # Of values that are all alike the test, of signs then, knows no spread.
    alike = len(values) >= MIN_RUNS and min(values) == max(values)
    return alike or summary.spread is Spread.INTERVAL or chance.p <= LEVEL


def ratio_of(a: Sequence[float], b: Sequence[float]) -> Estimate | None:
    """Estimate how many times b the values of a are; None when a side is empty or not positive.

    For values of which nobody knows the noise of their kind: the ends are the range of all pairs.

    >>> found = ratio_of([2.0, 8.0], [1.0, 1.0])
    >>> round(found.value, 6), found.low, found.high, found.spread.value
    (4.0, 2.0, 8.0, 'range')
    """
    if min(a, default=0.0) <= 0 or min(b, default=0.0) <= 0:
        return None
    logs = logs_of(a), logs_of(b)
    if not all(logs):  # not a finite one among them
        return None
    single = len(a) == len(b) == 1
    return Estimate(
        value=power(location(logs[0]).centre - location(logs[1]).centre),
        low=min(a) / max(b),
        high=max(a) / min(b),
        spread=Spread.SINGLE if single else Spread.RANGE,
    )


def paired_ratio_of(a: Mapping[int, float], b: Mapping[int, float]) -> Estimate | None:
    """Estimate the same over the repeats that both have, each with itself; None where a value has no logarithm."""
    common = sorted(a.keys() & b.keys())
    logs = logs_of(a[n] / b[n] for n in common if a[n] > 0 and b[n] > 0)
    return paired_ratio(logs) if logs and len(logs) == len(common) else None


def paired_ratio(logs: Sequence[float]) -> Estimate:
    """Return the mean of one ratio or more, given as logarithms, as verdicts take it: the ends are their range."""
    return Estimate(
        value=power(location(logs, trim=False).centre),
        low=power(min(logs)),
        high=power(max(logs)),
        spread=Spread.SINGLE if len(logs) == 1 else Spread.RANGE,
    )
