"""Is one set of values better than another, or can the two not be told apart?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from transect.analysis.statistics import (
    MIN_INTERVAL_VALUES,
    NoiseFloor,
    Summary,
    cliffs_delta,
    mann_whitney_p,
    summarise,
)
from transect.domain.metrics import Direction

__all__ = ["Comparison", "Sureness", "Verdict", "compare", "compare_paired"]


class Verdict(StrEnum):
    """Outcome of a comparison, seen from its first side."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "not distinguishable"


class Sureness(StrEnum):
    """How far a finding may be trusted.

    `firm`: shown by more than five values a side, or a fact that holds for every record.
    `tentative`: seen in every run, but in too few runs for an interval.
    `open`: the data cannot decide.
    """

    FIRM = "firm"
    TENTATIVE = "tentative"
    OPEN = "open"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two sets of values beside each other.

    `factor` is how many times better the better median is (1 or more), `delta` Cliff's effect
    size and `p` the Mann-Whitney probability, None when a side has fewer than six values.
    """

    a: Summary
    b: Summary
    verdict: Verdict
    sureness: Sureness
    factor: float
    delta: float
    p: float | None
    reason: str


def compare(
    a: Sequence[float],
    b: Sequence[float],
    *,
    direction: Direction = Direction.LOWER,
    floor: NoiseFloor | None = None,
) -> Comparison | None:
    """Compare two sets of positive values of one metric. None when a side is empty.

    A difference counts only if it exceeds the noise floor and the two intervals (for six values
    or more) or ranges (for fewer) do not overlap; with intervals, Mann-Whitney has to agree at
    5 %. One value a side has no spread: it needs a known floor, and twice that.
    """
    left, right = summarise(a), summarise(b)
    if left is None or right is None:
        return None
    delta = cliffs_delta(a, b)
    many = min(len(a), len(b)) >= MIN_INTERVAL_VALUES
    p = mann_whitney_p(a, b) if many else None
    factor = _factor(left.median, right.median)
    reason = _objection(left, right, factor, p, floor)
    lower_is_better = direction is Direction.LOWER
    if reason:
        verdict, sureness = Verdict.SAME, Sureness.OPEN
    else:
        a_wins = (left.median < right.median) == lower_is_better
        verdict = Verdict.BETTER if a_wins else Verdict.WORSE
        sureness = Sureness.FIRM if many and floor is not None else Sureness.TENTATIVE
        reason = _support(left, right, p, delta, floor)
    return Comparison(
        a=left, b=right, verdict=verdict, sureness=sureness,
        factor=factor, delta=delta, p=p, reason=reason,
    )  # fmt: skip


def compare_paired(
    a: Mapping[int, float],
    b: Mapping[int, float],
    *,
    direction: Direction = Direction.LOWER,
    floor: NoiseFloor | None = None,
) -> Comparison | None:
    """Compare two groups over the repeats that both have. None when they share none.

    What a repeat's seed does to both sides drops out of their ratios. A difference counts only if
    the median ratio exceeds the floor (of `paired_noise_floor`) and every ratio is on one side of 1.
    One common repeat needs twice the floor. `p` is that of the sign test, for six or more that agree.
    """
    common = sorted(a.keys() & b.keys())
    left, right = (summarise([side[repeat] for repeat in common]) for side in (a, b))
    if left is None or right is None or min(left.low, right.low) <= 0:
        return None
    ratios = [b[repeat] / a[repeat] for repeat in common]
    middle = statistics.median(ratios)
    factor = max(middle, 1 / middle)
    above, below = sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
    many = len(common) >= MIN_INTERVAL_VALUES
    agree = len(common) in (above, below)
    p = 2.0 ** (1 - len(common)) if many and agree else None
    reason = _within(factor - 1, floor, len(common) == 1)
    if not reason and not agree:
        reason = f"which of the two is better changes from seed to seed; {_above(floor)}"
    verdict, sureness = Verdict.SAME, Sureness.OPEN
    if not reason:
        a_wins = (middle > 1) == (direction is Direction.LOWER)
        verdict = Verdict.BETTER if a_wins else Verdict.WORSE
        sureness = Sureness.FIRM if many and floor is not None else Sureness.TENTATIVE
        seeds = "one run a side" if len(common) == 1 else f"so in each of {len(common)} seeds"
        reason = f"{seeds}; {_above(floor)}"
    return Comparison(
        a=left, b=right, verdict=verdict, sureness=sureness,
        factor=factor, delta=(below - above) / len(common), p=p, reason=reason,
    )  # fmt: skip


def _factor(x: float, y: float) -> float:
    low, high = sorted((x, y))
    if low <= 0:
        return 1.0 if high == low else math.inf
    return high / low


def _objection(
    left: Summary, right: Summary, factor: float, p: float | None, floor: NoiseFloor | None
) -> str:
    """Return why the two are not to be called different, or nothing."""
    alone = left.count == 1 or right.count == 1
    if within := _within(factor - 1, floor, alone):
        return within
    if left.low <= right.high and right.low <= left.high:
        return f"their {_ends(left, right)} overlap; {_above(floor)}"
    if p is not None and p >= 0.05:
        return f"Mann-Whitney p = {p:.2g}; {_above(floor)}"
    return ""


def _within(difference: float, floor: NoiseFloor | None, alone: bool) -> str:
    """Return why a difference may be noise, or nothing. `alone`: a side has one run."""
    if floor is not None and difference <= floor.relative:
        return (
            f"they differ by {_percent(difference)}, within the noise floor of "
            f"{_percent(floor.relative)} ({floor.pairs} A/A pairs)"
        )
    if alone and floor is None:
        return "one run a side and no noise floor: the spread is unknown"
    if alone and floor is not None and difference <= 2 * floor.relative:
        return (
            f"one run a side, {_percent(difference)} apart, less than twice the noise floor of "
            f"{_percent(floor.relative)}"
        )
    return ""


def _above(floor: NoiseFloor | None) -> str:
    if floor is None:
        return "no noise floor known"
    return f"above the noise floor of {_percent(floor.relative)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _ends(left: Summary, right: Summary) -> str:
    both = min(left.count, right.count) >= MIN_INTERVAL_VALUES
    return "95 % intervals" if both else "ranges"


def _support(
    left: Summary, right: Summary, p: float | None, delta: float, floor: NoiseFloor | None
) -> str:
    above = _above(floor)
    if p is not None:
        return (
            f"95 % intervals do not overlap, Mann-Whitney p = {p:.2g}, "
            f"Cliff's delta {delta:+.2f}; {above}"
        )
    if left.count == 1 or right.count == 1:
        return f"one run on a side; {above}"
    return (
        f"ranges of {left.count} and {right.count} runs do not overlap "
        f"(too few runs for an interval); {above}"
    )
