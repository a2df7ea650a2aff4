"""Is one set of values better than another, or can the data not decide?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from transect.domain.metrics import Direction
from transect.domain.until import MARGIN
from transect.stats.estimates import RATIO, RATIO_OF_PAIRS, Estimate, decided_ratio, paired_ratio_of, ratio_of
from transect.stats.noise import Noise
from transect.stats.samples import NoiseFloor, Summary, summarise
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
    value has no logarithm. `a` and `b` say where the values lie. `decision` holds the ratio's interval and the probability of its verdict; None where nothing tells
    the noise.
    """

    a: Summary
    b: Summary
    verdict: Verdict
    confidence: Confidence
    reason: str
    ratio: Estimate | None = None
    decision: Decision | None = None
    # Within which two are the same.
    margin: float = MARGIN
    # What it is made of, in words, and why it is no surer.
    of: str = ""
    doubt: str = ""

    @property
    def times(self) -> float | None:
        """How many times the second side's value the first one is; None where that is no number."""
        if self.ratio is not None:
            return self.ratio.value
        return self.a.median / self.b.median if self.b.median > 0 else None

    @property
    def equal(self) -> bool:
        """Whether the two are shown to be the same within the margin."""
        return self.decision is not None and self.decision.answer is Answer.SAME


def compare(
    a: Sequence[float], b: Sequence[float], *, direction: Direction = Direction.LOWER, floor: NoiseFloor | None = None
) -> Comparison | None:
    """Compare two sets of values of one metric by the noise of their kind, or else their own. None when a side is empty.

    Different, the same within the floor's margin (`equal`), or open; confirmed from three values a side on, in a noise
    that so few can be judged in (`is_confirmed`).
    """
    left, right = summarise(a), summarise(b)
    if left is None or right is None:
        return None
    positive = min(left.low, right.low) > 0
    decision = decide(a, b, *_noise_of(floor)) if positive else None
    runs = f"{len(a)} runs" if len(a) == len(b) else f"{len(a)} and {len(b)} runs"
    return _beside_floor(left, right, decision, floor, direction=direction, of=runs, ratio=ratio_of(a, b))


def compare_paired(
    a: Mapping[int, float],
    b: Mapping[int, float],
    *,
    direction: Direction = Direction.LOWER,
    floor: NoiseFloor | None = None,
) -> Comparison | None:
    """Compare two groups over the repeats that both have, by the noise of `paired_noise_floor`. None when they share none.

    What a repeat's seed does to both sides drops out of their ratios.
    """
    common = sorted(a.keys() & b.keys())
    left, right = (summarise([side[repeat] for repeat in common]) for side in (a, b))
    ratio = paired_ratio_of(a, b)
    if left is None or right is None or ratio is None:
        return None
    decision = decide_paired(a, b, *_noise_of(floor))
    seeds = f"{len(common)} seeds, each with itself"
    return _beside_floor(left, right, decision, floor, direction=direction, of=seeds, ratio=ratio)


def _noise_of(floor: NoiseFloor | None) -> tuple[Noise | None, float]:
    return (floor.noise, floor.margin) if floor else (None, MARGIN)


def _beside_floor(
    left: Summary, right: Summary, decision: Decision | None, floor: NoiseFloor | None, *, of: str, **told: Any
) -> Comparison:
    """Put a decision into words, which is confirmed where runs are enough for the noise floor."""
    if floor is not None:
        of = f"{of}, beside a noise floor of {100 * floor.relative:.1f} % ({floor.pairs} A/A pairs)"
    doubt, runs = "", min(left.count, right.count)
    if decision is None or floor is None:
        doubt = "no noise floor known"
    elif not is_confirmed(decision, runs, floor.relative, floor.margin, floor.upper, floor.often):
        doubt = "too few runs for such a noise floor"
    return judged(left, right, decision, of=of, margin=_noise_of(floor)[1], doubt=doubt, **told)


def judged(
    left: Summary,
    right: Summary,
    decision: Decision | None,
    *,
    direction: Direction,
    of: str,
    ratio: Estimate | None,
    margin: float,
    doubt: str = "",
) -> Comparison:
    """Put a decision into words. `of`: what it is made of; `ratio`: what is known without one; `doubt`: why it is not sure."""
    if decision is None or math.isinf(decision.high):
        return _undecided(left, right, ratio, direction, of, margin)
    verdict, confidence = Verdict.SAME, Confidence.PROVISIONAL if doubt else Confidence.CONFIRMED
    share = f"{100 * margin:g} %"
    ratio = decided_ratio(decision)
    name = RATIO if decision.pairs is None else RATIO_OF_PAIRS
    reason = f"{name} {ratio.value:.3g}, {ratio.word} {ratio.low:.3g} to {ratio.high:.3g} of {of}"
    if decision.answer is Answer.OPEN:
        confidence, doubt = Confidence.INCONCLUSIVE, ""
        reason = f"{reason}: neither the same nor {share} apart can be ruled out"
    elif decision.answer is Answer.SAME:
        reason = f"{reason}, within {share} with p = {decision.p:.2g}"
    else:
        verdict = Verdict.BETTER if (decision.ratio < 1) == (direction is Direction.LOWER) else Verdict.WORSE
        reason = f"{reason}, p = {decision.p:.2g}"
    return Comparison(
        a=left,
        b=right,
        verdict=verdict,
        confidence=confidence,
        reason=f"{reason}; {doubt}" if doubt else reason,
        ratio=ratio,
        decision=decision,
        margin=margin,
        of=of,
        doubt=doubt,
    )


def _undecided(
    left: Summary, right: Summary, ratio: Estimate | None, direction: Direction, of: str, margin: float
) -> Comparison:
    """Compare what nothing tells the noise of; without a ratio, as of a loss of 0, ranges that lie apart tell at most something."""
    verdict = Verdict.SAME
    reason = f"{of}: no cell of this kind ran twice, so the noise is not known"
    if ratio is None:
        reason = "a value is not positive, so there is no ratio"
        if min(left.count, right.count) > 1 and (left.high < right.low or right.high < left.low):
            verdict = Verdict.BETTER if (left.high < right.low) == (direction is Direction.LOWER) else Verdict.WORSE
            reason = f"{reason}; the ranges of {of} lie apart"
    return Comparison(
        a=left,
        b=right,
        verdict=verdict,
        confidence=Confidence.INCONCLUSIVE if verdict is Verdict.SAME else Confidence.PROVISIONAL,
        reason=reason,
        ratio=ratio,
        margin=margin,
        of=of,
    )
