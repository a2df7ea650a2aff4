"""Is one set of values better than another, or can the data not decide?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from transect.domain.metrics import Direction
from transect.domain.until import MARGIN
from transect.stats.estimates import RATIO, Estimate, decided_ratio, paired_ratio_of, ratio_of
from transect.stats.samples import MIN_INTERVAL_VALUES, NoiseFloor, Summary, cliffs_delta, mann_whitney_p, summarise
from transect.stats.verdicts import Answer, Decision, decide, decide_paired, is_confirmed


class Verdict(StrEnum):
    """Outcome of a comparison, seen from its first side. `SAME`: shown to be (`equal`), or unknown."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "not distinguishable"


class Confidence(StrEnum):
    """How far a finding may be trusted.

    `confirmed`: shown by three repeats a side or more, beside all comparisons that a study's findings
    make, or a fact that holds for every record. `provisional`: seen, but in too few runs, under unequal
    conditions, or as one of so many comparisons that it may be chance. `inconclusive`: the data cannot decide.
    """

    CONFIRMED = "confirmed"
    PROVISIONAL = "provisional"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two sets of values compared with each other.

    `ratio` is that of the first to the second, the one estimate that verdict, claim and evidence share; None where a
    value has no logarithm. `factor` is how many times better the better one is by it (1 or more), `delta` Cliff's
    effect size. `a` and `b` say where the values lie. `decision` holds the ratio's interval and the probability of
    its verdict; None where no repeats tell the noise. Then `p` is that of the Mann-Whitney or sign test, None
    when a side has fewer than six values.
    """

    a: Summary
    b: Summary
    verdict: Verdict
    confidence: Confidence
    factor: float
    delta: float
    p: float | None
    reason: str
    ratio: Estimate | None = None
    decision: Decision | None = None
    # Of how many groups the first was chosen because it is the best.
    n_candidates: int = 2
    # Within which two are the same.
    margin: float = MARGIN

    @property
    def equal(self) -> bool:
        """Whether the two are shown to be the same within the margin."""
        return self.decision is not None and self.decision.answer is Answer.SAME

    @property
    def interval(self) -> Estimate | None:
        """The ratio of the first to the second with its 95 % interval, where one is known."""
        return self.ratio if self.decision is not None else None

    @property
    def n_comparisons(self) -> float:
        """For how many comparisons it counts: the best of k stands for all pairs of k, over k - 1."""
        return self.n_candidates / 2


def compare(
    a: Sequence[float], b: Sequence[float], *, direction: Direction = Direction.LOWER, floor: NoiseFloor | None = None
) -> Comparison | None:
    """Compare two sets of positive values of one metric. None when a side is empty.

    With two values a side and the noise of their kind, `decide` gives the verdict: different, the
    same within the floor's margin (`equal`), or open; confirmed from three values a side on. Otherwise a
    difference counts only if it exceeds the noise floor and the two ranges do not overlap. One value
    a side has no spread: it needs a known floor, and twice that.
    """
    left, right = summarise(a), summarise(b)
    if left is None or right is None:
        return None
    fewest = min(len(a), len(b))
    positive = min(left.low, right.low) > 0
    if floor is not None and floor.noise is not None and fewest > 1 and positive:
        decision = decide(a, b, floor.noise, margin=floor.margin, looks=floor.looks)
        assert decision is not None
        runs = str(len(a)) if len(a) == len(b) else f"{len(a)} and {len(b)}"
        return _decided(
            left, right, decision, direction, floor, delta=cliffs_delta(a, b), fewest=fewest, of=f"{runs} runs"
        )
    p = mann_whitney_p(a, b) if fewest >= MIN_INTERVAL_VALUES else None
    ratio = ratio_of(a, b)
    factor = _factor(ratio.value, 1.0) if ratio else _factor(left.median, right.median)
    reason = _objection(left, right, factor, p, floor)
    lower = ratio.value < 1 if ratio else left.median < right.median
    a_wins = lower == (direction is Direction.LOWER)
    many = fewest >= MIN_INTERVAL_VALUES and floor is not None
    delta = cliffs_delta(a, b)
    return Comparison(
        a=left,
        b=right,
        verdict=_side(a_wins) if not reason else Verdict.SAME,
        confidence=_confidence(many) if not reason else Confidence.INCONCLUSIVE,
        factor=factor,
        delta=delta,
        p=p,
        reason=reason or _support(left, right, p, delta, floor),
        ratio=ratio,
    )


def compare_paired(
    a: Mapping[int, float],
    b: Mapping[int, float],
    *,
    direction: Direction = Direction.LOWER,
    floor: NoiseFloor | None = None,
) -> Comparison | None:
    """Compare two groups over the repeats that both have. None when they share none.

    What a repeat's seed does to both sides drops out of their ratios. `decide_paired` gives the
    verdict where two repeats and the noise (of `paired_noise_floor`) are known. Otherwise a
    difference counts only if the mean ratio exceeds the floor and every ratio is on one side of 1,
    and one common repeat needs twice the floor. `p` is that of the sign test, for six or more that agree.
    """
    common = sorted(a.keys() & b.keys())
    left, right = (summarise([side[repeat] for repeat in common]) for side in (a, b))
    ratio = paired_ratio_of(a, b)
    if left is None or right is None or ratio is None:
        return None
    above, below = (sum(sign * (b[n] - a[n]) > 0 for n in common) for sign in (1, -1))
    agree = len(common) in (above, below)
    delta = (below - above) / len(common)
    if floor is not None and floor.noise is not None and len(common) > 1:
        decision = decide_paired(a, b, floor.noise, margin=floor.margin, looks=floor.looks)
        assert decision is not None
        return _decided(
            left,
            right,
            decision,
            direction,
            floor,
            delta=delta,
            fewest=len(common),
            of=f"{len(common)} seeds, each with itself",
        )
    many = len(common) >= MIN_INTERVAL_VALUES
    p = 2.0 ** (1 - len(common)) if many and agree else None
    factor = _factor(ratio.value, 1.0)
    reason = _within(factor - 1, floor, len(common) == 1)
    if not reason and not agree:
        reason = f"which of the two is better changes from seed to seed; {_above(floor)}"
    seeds = "one run a side" if len(common) == 1 else f"so in each of {len(common)} seeds"
    a_wins = (ratio.value < 1) == (direction is Direction.LOWER)
    return Comparison(
        a=left,
        b=right,
        verdict=_side(a_wins) if not reason else Verdict.SAME,
        confidence=_confidence(many and floor is not None) if not reason else Confidence.INCONCLUSIVE,
        factor=factor,
        delta=delta,
        p=p,
        reason=reason or f"{seeds}; {_above(floor)}",
        ratio=ratio,
    )


def _decided(
    left: Summary,
    right: Summary,
    decision: Decision,
    direction: Direction,
    floor: NoiseFloor,
    *,
    delta: float,
    fewest: int,
    of: str,
) -> Comparison:
    confidence = _confidence(is_confirmed(decision, fewest, floor.relative, floor.margin, floor.upper, floor.often))
    interval = f"{RATIO} {decision.ratio:.3g}, 95 % interval {decision.low:.3g} to {decision.high:.3g}"
    margin = f"{100 * floor.margin:g} %"
    noise = f"noise floor of {_percent(floor.relative)} ({floor.pairs} A/A pairs)"
    estimate = f"{interval} of {of}, beside a {noise}, Cliff's delta {delta:+.2f}"
    if decision.answer is Answer.DIFFERENT:
        verdict = _side((decision.ratio < 1) == (direction is Direction.LOWER))
        reason = f"{estimate}, p = {decision.p:.2g}"
    elif decision.answer is Answer.SAME:
        verdict, reason = Verdict.SAME, f"{estimate}, within {margin} with p = {decision.p:.2g}"
    else:
        verdict, confidence = Verdict.SAME, Confidence.INCONCLUSIVE
        reason = f"{estimate}: neither the same nor {margin} apart can be ruled out"
    if verdict is not Verdict.SAME or decision.answer is Answer.SAME:
        reason += "" if confidence is Confidence.CONFIRMED else "; too few runs for such a noise floor"
    return Comparison(
        a=left,
        b=right,
        verdict=verdict,
        confidence=confidence,
        factor=max(decision.ratio, 1 / decision.ratio),
        delta=delta,
        p=None,
        reason=reason,
        ratio=decided_ratio(decision),
        decision=decision,
        margin=floor.margin,
    )


def _side(a_wins: bool) -> Verdict:
    return Verdict.BETTER if a_wins else Verdict.WORSE


def _confidence(enough: bool) -> Confidence:
    return Confidence.CONFIRMED if enough else Confidence.PROVISIONAL


def _factor(x: float, y: float) -> float:
    low, high = sorted((x, y))
    if low <= 0:
        return 1.0 if high == low else math.inf
    return high / low


def _objection(left: Summary, right: Summary, factor: float, p: float | None, floor: NoiseFloor | None) -> str:
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


def _support(left: Summary, right: Summary, p: float | None, delta: float, floor: NoiseFloor | None) -> str:
    above = _above(floor)
    if p is not None:
        return f"95 % intervals do not overlap, Mann-Whitney p = {p:.2g}, Cliff's delta {delta:+.2f}; {above}"
    if left.count == 1 or right.count == 1:
        return f"one run on a side; {above}"
    return f"ranges of {left.count} and {right.count} runs do not overlap (too few runs for an interval); {above}"
