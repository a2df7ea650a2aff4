"""What became of published claims: verdicts, the numbers that they rest on, and what they were held against."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Floors, Group
from transect.domain.claims import Claim, Measured, Rule, Work
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread
from transect.stats.verdicts import Answer, Decision

# By how many times half an interval of 95 % a value has to be apart to be told from it four times in five.
_POWER = 1 + 0.8416 / 1.96


class Verdict(StrEnum):
    """What the cells say of a claim."""

    HOLDS = "holds"
    DIRECTION = "direction only"
    FAILS = "does not hold"
    OPEN = "open"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A published number, and on the same axis what is measured: its interval and every sample.

    `label` says which of several numbers it is. `here` is None where no cell of it has a result.
    """

    label: str
    published: float
    here: Estimate | None = None
    samples: Sequence[float] = ()
    compared: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """A claim, its verdict and what that rests on.

    `gap`: a difference from the published number of this share would have been seen. `firm`: by undisturbed runs enough
    that a question asks for; otherwise tentative. `edited`: its rule is younger than the runs, and decides nothing.
    """

    work: Work
    claim: Claim
    verdict: Verdict
    reason: str
    measured: Measured | None = None
    points: Sequence[Point] = ()
    contrasts: Sequence[Contrast] = ()
    groups: Sequence[Group[Any]] = ()
    gap: float | None = None
    firm: bool = False
    edited: bool = False

    @property
    def simulated(self) -> bool:
        """Whether it rests on the simulator, and on nothing that was measured."""
        return self.measured is not None and self.measured.replicas > 0

    @property
    def confidence(self) -> Confidence:
        """The same in the words of the report's findings."""
        if self.verdict in (Verdict.OPEN, Verdict.NOT_COMPARABLE) or self.simulated:
            return Confidence.INCONCLUSIVE
        return Confidence.CONFIRMED if self.firm else Confidence.PROVISIONAL


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What claims of one study are held against.

    `since`: by rule (`rule_id`), when it was fixed: without that it decides nothing. `speed_up` gives the simulator's speed-up at a
    number of replicas and whether its network is one that no line describes; `error` the mean error of predictions.
    """

    study: str
    groups: Callable[[str], Sequence[Group[Any]]]
    floors: Floors
    since: Mapping[str, str] | None = None
    asked: bool = False
    speed_up: Callable[[int], tuple[float, bool] | None] = lambda replicas: None
    error: float | None = None


def judged(rule: Rule, here: Estimate, published: float) -> Verdict:
    """Hold an interval beside the published number and the band that the rule allows around it."""
    low, high = published / rule.factor, published * rule.factor
    one_sided = rule.test == "at least"
    if here.low >= low and (one_sided or here.high <= high):
        return Verdict.HOLDS
    if here.high < low or (not one_sided and here.low > high):
        # What may be 1 by the rule has no direction.
        up, down = low > 1 and here.low > 1, high < 1 and here.high < 1
        return Verdict.DIRECTION if up or down else Verdict.FAILS
    return Verdict.OPEN


def together(rule: Rule, verdicts: Sequence[Verdict], *, whole: bool) -> Verdict:
    """Return the verdict of several comparisons: of `at least` one has to hold, otherwise all, and `whole` none be lacking."""
    if rule.test == "at least":
        best_first = (Verdict.HOLDS, Verdict.OPEN, Verdict.DIRECTION, Verdict.FAILS)
        return next(verdict for verdict in best_first if verdict in verdicts)
    worst_first = (Verdict.FAILS, Verdict.DIRECTION, Verdict.OPEN)
    return next((verdict for verdict in worst_first if verdict in verdicts), Verdict.HOLDS if whole else Verdict.OPEN)


def ordered(rights: Sequence[bool | None], *, whole: bool) -> Verdict:
    """Return the verdict on an order, of pairs shown as published (True), shown the other way or the same (False), or open."""
    if False in rights:
        return Verdict.DIRECTION if rights.count(True) > rights.count(False) else Verdict.FAILS
    return Verdict.HOLDS if whole and None not in rights else Verdict.OPEN


def gap_of(points: Iterable[Point]) -> float | None:
    """Return how far from the published number, as a share of it, a value had to be to be seen: for the widest interval.

    Seen four times in five: by half the interval it would be every second time.
    """
    known = [point.here for point in points if point.here is not None and point.here.spread is Spread.INTERVAL]
    if not known or any(here.low <= 0 or math.isinf(here.high) for here in known):
        return None
    return max(math.exp(_POWER * math.log(here.high / here.low) / 2) - 1 for here in known)


def holm(made: Sequence[Contrast], level: float) -> Iterator[bool | None]:
    """Yield whether the first of each pair is shown to have the higher value, False for the lower one; None where open.

    Holm's procedure, in which the best of several counts for as many; the margin of other questions plays no part.
    """
    chances = [1.0 if each.barred or each.decision is None else _p_apart(each.decision) for each in made]
    left, least, shown = math.fsum(each.n_comparisons for each in made), 0.0, set()
    for p, n in sorted(zip(chances, range(len(made)), strict=True)):
        least = max(least, p * left)
        if least <= level:
            shown.add(n)
        left -= made[n].n_comparisons
    for n, each in enumerate(made):
        yield each.ratio.value > 1 if n in shown else None


def _p_apart(decision: Decision) -> float:
    """Return the probability of the test for a difference."""
    return decision.p_other if decision.answer is Answer.SAME else decision.p
