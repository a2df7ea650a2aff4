"""What a container costs: the same cells with and without, compared repeat by repeat.

Both sides of a pair are the same repeat: one seed, one block, one set of nodes, in random order. The median
of the pairs' ratios and differences has a rank-based interval from six pairs on (T. Hoefler and R. Belli,
"Scientific benchmarking of parallel computing systems", SC'15, section 3.2.2), else a range. The noise floor is that
of the ratios themselves: by how much those of two repeats differ, where nothing but the repeat does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group
from transect.analysis.side_by_side import apart
from transect.domain.until import MARGIN
from transect.stats.comparisons import Confidence, compare_paired
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
    """One number of a group in a container beside that of the same cells without; `size` is the message's in bytes, if any."""

    contrast: Contrast
    size: int | None = None

    @property
    def group(self) -> Group[Any]:
        """The cells in the container."""
        return self.contrast.group

    @property
    def metric(self) -> str:
        """What was measured."""
        return self.contrast.metric

    @property
    def ratio(self) -> Estimate:
        """With over without."""
        return self.contrast.ratio

    @property
    def more(self) -> Estimate:
        """What it costs, in s, of the median without."""
        return self.ratio.beyond(self.contrast.comparison.b.median)

    @property
    def container(self) -> str:
        """Who ran the group."""
        return str(self.group.cell.container)


def container_costs(
    groups: Iterable[Group[Any]], *, margin: float = MARGIN, asks: Callable[[str], bool] = lambda metric: True
) -> list[ContainerCost]:
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
            made = _contrast(group, base, metric, label, margin=margin, asked=asks(metric))
            if made is not None:
                found.append(ContainerCost(contrast=made, size=size))
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


def _contrast(
    group: Group[Any], base: Group[Any], metric: str, label: str | None, *, margin: float, asked: bool
) -> Contrast | None:
    inside, without = _by_repeat(group, metric, label), _by_repeat(base, metric, label)
    common = sorted(inside.keys() & without.keys())
    floor = noise_floor([[inside[repeat] / without[repeat] for repeat in common]], margin=margin)
    comparison = compare_paired(inside, without, floor=floor)
    if comparison is None:
        return None
    disturbed = "other programs ran during too many of these runs" if group.noisy or base.noisy else ""
    return Contrast(
        group=group,
        base=base,
        varies="container",
        metric=metric,
        by="run",
        pairs=len(common),
        left_out=0,
        quiet=not disturbed,
        asked=asked,
        comparison=comparison,
        doubt=disturbed or apart((group, base)) or comparison.doubt,
        barred="processes share cores" if group.over_subscribed or base.over_subscribed else "",
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
    steps = [cost for cost in costs if cost.metric == "step_time" and not cost.contrast.over_subscribed]
    if not steps:
        return None
    worst = max(steps, key=lambda cost: (cost.ratio.low, cost.ratio.high, cost.group.cell.id))
    if worst.ratio.low > 1 + LITTLE and worst.contrast.shown:
        return Published(verdict="not little", confidence=worst.contrast.confidence, cost=worst, pairs=len(steps))
    widest = max(steps, key=lambda cost: (cost.ratio.high, cost.group.cell.id))
    intervals = all(cost.contrast.pairs >= MIN_INTERVAL_VALUES for cost in steps)
    if widest.ratio.high <= 1 + LITTLE and intervals:
        return Published(verdict="little", confidence=Confidence.CONFIRMED, cost=widest, pairs=len(steps))
    return Published(verdict="open", confidence=Confidence.INCONCLUSIVE, cost=widest, pairs=len(steps))
