"""A contrast: two groups that differ in one thing, compared by the metric that decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Group
from transect.domain.metrics import Direction, metric
from transect.domain.until import MIN_RUNS
from transect.stats.comparisons import Comparison, Confidence, Verdict, judged
from transect.stats.estimates import Estimate
from transect.stats.verdicts import EARLY, Answer, Decision

_MOST_RUNS = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """Two groups that differ in one thing, compared by one metric.

    `varies` says in the field's words what they differ in, and `by` how their values were paired: `turn` (launches that
    took turns), `seed`, `run` (neighbours in time), or empty for not at all. `pairs` of launches, or the smaller number of
    runs, entered; `left_out` disturbed ones did not. Not `quiet`: too few were undisturbed, so all entered. `asked`: a
    question of the study asks for it. `doubt`: why it cannot be more than likely; `barred`: why it says nothing. `candidates`: of how
    many groups one of the two was chosen because it is the best. `seen`: the range of the ratios.
    """

    group: Group[Any]
    base: Group[Any]
    varies: str
    metric: str
    by: str
    pairs: int
    left_out: int
    quiet: bool
    asked: bool
    comparison: Comparison
    doubt: str = ""
    barred: str = ""
    candidates: int = 2
    seen: Estimate | None = None

    @property
    def n_comparisons(self) -> float:
        """For how many comparisons it counts: the best of k stands for all pairs of k, over k - 1."""
        return self.candidates / 2

    @property
    def decision(self) -> Decision | None:
        """The interval and the probability behind it; None where nothing tells the noise."""
        return self.comparison.decision

    def at(self, level: float) -> Contrast:
        """Return it decided at another level."""
        known = self.comparison
        if known.decision is None:
            return self
        judged_again = judged(
            known.a,
            known.b,
            known.decision.at(level, known.margin),
            direction=metric(self.metric).direction,
            of=known.of,
            ratio=known.ratio,
            margin=known.margin,
        )
        return replace(self, comparison=judged_again)

    @property
    def ratio(self) -> Estimate:
        """The group's value over the base's, with the interval that decided; what says nothing has a range alone."""
        known = self.seen if self.barred and self.seen else self.comparison.ratio
        value = known.value if known else self.comparison.a.median / (self.comparison.b.median or math.nan)
        return known or Estimate(value=value, low=value, high=value, spread=self.comparison.a.spread)

    @property
    def times(self) -> Estimate:
        """How many times better the better one is, 1 or more."""
        return self.ratio if self.ratio.value >= 1 else self.ratio.inverse

    @property
    def cost(self) -> Estimate:
        """How many times as long, or as much, the group takes as the base: less is better, whatever the metric."""
        return self.ratio.inverse if metric(self.metric).direction is Direction.HIGHER else self.ratio

    @property
    def saves(self) -> Estimate:
        """Which share of the base's time the group saves; less than nothing where it takes longer."""
        cost = self.cost
        return replace(cost, value=1 - cost.value, low=1 - cost.high, high=1 - cost.low)

    @property
    def answer(self) -> Answer:
        """Different, the same within the margin, or open."""
        return self.decision.answer if self.decision is not None and not self.barred else Answer.OPEN

    @property
    def better(self) -> Group[Any] | None:
        """The better of the two where they are shown to differ."""
        if not self.shown:
            return None
        return self.group if self.comparison.verdict is Verdict.BETTER else self.base

    @property
    def over_subscribed(self) -> bool:
        """Whether ranks of either share cores: then it supports no claim."""
        return self.group.over_subscribed or self.base.over_subscribed

    @property
    def shown(self) -> bool:
        """Whether the two are shown to differ."""
        return self.answer is Answer.DIFFERENT

    @property
    def apart_beyond_doubt(self) -> bool:
        """Whether the two are shown to differ so surely that looking again after each repeat does not matter."""
        return self.shown and self.quiet and self.decision is not None and self.decision.p <= EARLY

    @property
    def sound(self) -> bool:
        """Whether its verdict may be sure: asked, of quiet runs enough, that were measured beside each other."""
        return self.asked and not self.doubt and not self.barred

    @property
    def confidence(self) -> Confidence:
        """How far its answer may be trusted, before it stands beside all others."""
        if self.answer is Answer.OPEN:
            return Confidence.INCONCLUSIVE
        return Confidence.CONFIRMED if self.sound else Confidence.PROVISIONAL

    @property
    def reason(self) -> str:
        """What the answer rests on, and why it is not surer."""
        doubts = (self.barred, self.doubt, "" if self.asked else "no question of the study asks for it")
        return "; ".join([self.comparison.reason, *filter(None, doubts)])

    @property
    def half_width(self) -> float:
        """Half the width of the interval of the ratio's logarithm; inf where nothing tells it."""
        return self.decision.half_width if self.decision is not None else math.inf

    @property
    def needs(self) -> str:
        """What would decide it, as far as these runs tell: `about 9 more runs a side (4 minutes)`; empty where decided."""
        if self.answer is not Answer.OPEN:
            return ""
        if self.over_subscribed:
            return "a machine with more cores"
        if self.barred or not self.quiet:
            return "a machine that nobody else uses"
        if math.isinf(self.half_width) or self.pairs < MIN_RUNS:
            more = max(1, MIN_RUNS - self.pairs)
            return f"at least {more} more run{'s' if more > 1 else ''} a side"
        assert self.decision is not None
        log = abs(math.log(self.decision.ratio))
        # As wide as may be for this ratio to be told from 1, or to lie within the margin.
        enough = max(log, math.log1p(self.comparison.margin) - log)
        more = max(1, math.ceil(self.pairs * ((self.half_width / enough) ** 2 - 1)))
        if more > _MOST_RUNS:
            return f"more than {_MOST_RUNS} runs a side"
        seconds = more * sum(_seconds_of(side.ok) for side in (self.group, self.base))
        took = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{max(1, round(seconds))} s"
        return f"about {more} more run{'s' if more > 1 else ''} a side ({took})"


def _seconds_of(records: Sequence[AnyRecord]) -> float:
    """Return the mean time that a run took, without waiting for its turns; 0 where nobody knows."""
    times = []
    for record in records:
        try:
            took = datetime.fromisoformat(record.ended) - datetime.fromisoformat(record.started)
        except (TypeError, ValueError):
            continue
        times.append(max(0.0, took.total_seconds() - float(record.details.get("waited_s") or 0.0)))
    return sum(times) / len(times) if times else 0.0
