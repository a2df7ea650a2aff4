"""How many times one set of values exceeds another, with the ends of that.

The ratio is that of the trimmed geometric means, as in every verdict (`transect.stats.verdicts`), so that what
is claimed is what was tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transect.stats.noise import location, logs_of
from transect.stats.samples import MIN_INTERVAL_VALUES, Spread
from transect.stats.verdicts import Decision, decide, power

# What every ratio of two sets of runs is called. Of fewer than five values none is trimmed; run by run, or seed by
# seed, it is the mean of the ratios.
RATIO = "ratio of trimmed geometric means"


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A ratio, or what it comes to in the unit of the values, and its ends.

    `spread` says what the ends are: a 95 % interval, the range of all pairs for fewer than six values a side of which
    the noise is not known, or nothing but the value itself for one a side.
    """

    value: float
    low: float
    high: float
    spread: Spread

    @property
    def inverse(self) -> Estimate:
        """The ratio seen from the other side: the upper end becomes the lower one."""
        value, low, high = (1 / end if end > 0 else math.inf for end in (self.value, self.high, self.low))
        return Estimate(value=value, low=low, high=high, spread=self.spread)

    def beyond(self, base: float) -> Estimate:
        """Return what a ratio to a base comes to beyond it, in the base's unit."""
        value, low, high = (base * (end - 1) for end in (self.value, self.low, self.high))
        return Estimate(value=value, low=low, high=high, spread=self.spread)

    @property
    def word(self) -> str:
        """Name the ends in words: `95 % interval`, `range` or `one run a side`."""
        if self.spread is Spread.INTERVAL:
            return "95 % interval"
        return "range" if self.spread is Spread.RANGE else "one run a side"


def decided_ratio(decision: Decision) -> Estimate:
    """Return the ratio that a verdict rests on, with its 95 % interval."""
    return Estimate(value=decision.ratio, low=decision.low, high=decision.high, spread=Spread.INTERVAL)


def ratio_of(a: Sequence[float], b: Sequence[float]) -> Estimate | None:
    """Estimate how many times b the values of a are; None when a side is empty or not positive.

    For values of which nobody knows the noise of their kind: the interval is that of their own spread.

    >>> found = ratio_of([2.0, 8.0], [1.0, 1.0])
    >>> round(found.value, 6), found.low, found.high, found.spread.value
    (4.0, 2.0, 8.0, 'range')
    """
    if min(a, default=0.0) <= 0 or min(b, default=0.0) <= 0:
        return None
    if min(len(a), len(b)) >= MIN_INTERVAL_VALUES:
        decision = decide(a, b, None)
        return None if decision is None else decided_ratio(decision)
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
    """Estimate the same over the repeats that both have, each with itself: the ends are the range of their ratios."""
    common = sorted(a.keys() & b.keys())
    ratios = [a[n] / b[n] for n in common if a[n] > 0 and b[n] > 0]
    logs = logs_of(ratios)
    if not logs or len(logs) < len(common):
        return None
    return Estimate(
        value=math.exp(location(logs).centre),
        low=min(ratios),
        high=max(ratios),
        spread=Spread.SINGLE if len(ratios) == 1 else Spread.RANGE,
    )
