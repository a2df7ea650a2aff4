"""What a container costs: the same cells with and without, compared repeat by repeat.

Both sides of a pair are the same repeat: one seed, one block, one set of nodes, in random order. The median
of the pairs' ratios and differences has a rank-based interval from six pairs on (T. Hoefler and R. Belli,
"Scientific benchmarking of parallel computing systems", SC'15, section 3.2.2), else a range. The noise floor is that
of the ratios themselves: by how much those of two repeats differ, where nothing but the repeat does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from transect.analysis.groups import Group
from transect.analysis.side_by_side import under
from transect.domain.until import AnalysisPlan
from transect.stats.comparisons import Comparison, Confidence, Verdict, compare_paired
from transect.stats.estimates import Estimate
from transect.stats.samples import MIN_INTERVAL_VALUES, noise_floor

# What is compared in a pair: metric, its words, and the stage whose cells measure it.
QUESTIONS = {
    "startup_time": "start-up",
    "step_time": "a step",
    "input_time": "reading a step's files",
    "collective_time": "a collective",
}
# More than that is not little; nobody has said how much is, so the report says this.
LITTLE = 0.05
# What a sweep calls its points.
_LATENCY = "avg_latency"


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerCost:
    """One number of a group in a container beside that of the same cells without.

    `ratio` is with over without, `more` what that comes to in s, of the median without; `size` is the message's in bytes,
    where it is about one. `comparison` has the base first: the better one where the container costs something, and
    `ratio` is its ratio seen from the other side.
    """

    group: Group[Any]
    base: Group[Any]
    metric: str
    ratio: Estimate
    comparison: Comparison
    size: int | None = None

    @property
    def more(self) -> Estimate:
        """What it costs, in s."""
        return self.ratio.beyond(self.comparison.a.median)

    @property
    def pairs(self) -> int:
        """How many repeats ran with and without."""
        return self.comparison.a.count

    @property
    def container(self) -> str:
        """Who ran the group."""
        return str(self.group.cell.container)

    @property
    def over_subscribed(self) -> bool:
        """Whether ranks shared cores on either side: then it is a number without a claim."""
        return self.group.over_subscribed or self.base.over_subscribed

    @property
    def shown(self) -> bool:
        """Whether the two differ by more than the noise, within their cores."""
        return self.comparison.verdict is not Verdict.SAME and not self.over_subscribed

    @property
    def same(self) -> bool:
        """Whether the two are shown to be the same within the margin, within their cores."""
        return self.comparison.equal and not self.over_subscribed

    @property
    def confidence(self) -> Confidence:
        """With which confidence one of the two takes longer, or that neither does."""
        return self.comparison.confidence if self.shown or self.same else Confidence.INCONCLUSIVE

    @property
    def reason(self) -> str:
        """Why they are, or are not, called different."""
        reason = self.comparison.reason
        return f"ranks share cores; {reason}" if self.over_subscribed else reason

    def comparisons(self, of: int) -> tuple[Comparison, ...]:
        """What a finding on the largest of so many pairs rests on: nothing where ranks share cores."""
        return () if self.over_subscribed else (replace(self.comparison, n_candidates=2 * of),)


def container_costs(groups: Iterable[Group[Any]], analysis_plan: AnalysisPlan | None = None) -> list[ContainerCost]:
    """Return every number of every group in a container that ran without one too, in order of the cells.

    Of a collective those of the smallest and of the largest message that all runs of both sides came to.
    """
    every = [group for group in groups if group.ok and not group.wrong]
    bases = {group.cell.apart_from("container"): group for group in every if group.cell.container is None}
    found = []
    for group in every:
        base = None if group.cell.container is None else bases.get(group.cell.apart_from("container"))
        if base is None:
            continue
        for metric, label, size in _asked(group, base):
            cost = _cost(group, base, metric, label, size, analysis_plan or AnalysisPlan())
            if cost is not None:
                found.append(cost)
    return found


def _asked(group: Group[Any], base: Group[Any]) -> Iterator[tuple[str, str | None, int | None]]:
    for metric in QUESTIONS:
        if metric == "input_time" and group.cell.get("input") != "files":
            continue
        series = [
            {
                (number.label, number.log.size if number.log and number.log.series == _LATENCY else None)
                for number in record.metrics
                if number.name == metric
            }
            for record in (*group.ok, *base.ok)
        ]
        common = set.intersection(*series)
        if (None, None) in common:
            yield metric, None, None
        sized = {size: label for label, size in common if size is not None}
        for size in sorted({min(sized), max(sized)}) if sized else ():
            yield metric, sized[size], size


def _by_repeat(group: Group[Any], metric: str, label: str | None) -> dict[int, float]:
    values = ((record.repeat, record.value(metric, label)) for record in group.ok)
    return {repeat: value for repeat, value in values if value is not None and value > 0}


def _cost(
    group: Group[Any], base: Group[Any], metric: str, label: str | None, size: int | None, analysis_plan: AnalysisPlan
) -> ContainerCost | None:
    inside, without = _by_repeat(group, metric, label), _by_repeat(base, metric, label)
    common = sorted(inside.keys() & without.keys())
    ratios = [inside[repeat] / without[repeat] for repeat in common]
    floor = noise_floor([ratios], margin=analysis_plan.margin, looks=analysis_plan.interim_looks(group.cell.stage))
    comparison = compare_paired(without, inside, floor=floor)
    if comparison is None or comparison.ratio is None:
        return None
    return ContainerCost(
        group=group,
        base=base,
        metric=metric,
        ratio=comparison.ratio.inverse,
        comparison=under(comparison, group, base),
        size=size,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What is left of the published claim that a container costs little: the step that it changes most."""

    verdict: str
    confidence: Confidence
    cost: ContainerCost
    # Step times that it was chosen from.
    pairs: int


def published_answer(costs: Iterable[ContainerCost]) -> Published | None:
    """Answer it by the step times of all pairs; None where there is none within its cores.

    "little" where the upper end of each is below 1.05 times, "not little" where the lower end of one is
    above, and "open" otherwise, or with fewer pairs than an interval needs.
    """
    steps = [cost for cost in costs if cost.metric == "step_time" and not cost.over_subscribed]
    if not steps:
        return None
    worst = max(steps, key=lambda cost: (cost.ratio.low, cost.ratio.high, cost.group.cell.id))
    if worst.ratio.low > 1 + LITTLE and worst.shown:
        return Published(verdict="not little", confidence=worst.confidence, cost=worst, pairs=len(steps))
    widest = max(steps, key=lambda cost: (cost.ratio.high, cost.group.cell.id))
    intervals = all(cost.pairs >= MIN_INTERVAL_VALUES for cost in steps)
    if widest.ratio.high <= 1 + LITTLE and intervals:
        return Published(verdict="little", confidence=Confidence.CONFIRMED, cost=widest, pairs=len(steps))
    return Published(verdict="open", confidence=Confidence.INCONCLUSIVE, cost=widest, pairs=len(steps))
