"""Cells that differ in one respect only: in their input, or in what the batch does to the rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transect.analysis.groups import Floors, Group, grouped
from transect.analysis.parallelism import division
from transect.analysis.scaling import TrainGroup
from transect.domain.axes.train import TrainCell
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.stats.comparisons import Comparison, compare
from transect.stats.estimates import ratio_of
from transect.stats.samples import Summary

_RATE = "samples_per_second"
# What the names of strategies begin with that sum as they were published, and cannot do otherwise.
_PUBLISHED = "published-"


@dataclass(frozen=True, kw_only=True, slots=True)
class InputPenalty:
    """What a group loses to its input: `value` is 1 - its rate over its synthetic twin's.

    `low` and `high` are its ends, by the ratio that `comparison` goes by. `comparison` is seen from the
    twin, against the larger noise floor of the two; None for over-subscribed groups.
    """

    group: TrainGroup
    twin: TrainGroup
    rate: Summary
    twin_rate: Summary
    value: float
    low: float
    high: float
    comparison: Comparison | None


def input_penalties(groups: Sequence[TrainGroup], floors: Floors) -> list[InputPenalty]:
    """Return the penalty of every right group that has a synthetic twin, in order of the groups."""
    able = [g for g in groups if not g.wrong and (s := g.summary(_RATE)) and s.low > 0]
    twins = {g.cell.model_copy(update={"input": "stored"}): g for g in able if g.kind.synthetic}
    penalties = []
    for group in able:
        twin = twins.get(group.cell.model_copy(update={"input": "stored"}))
        if twin is None or group.kind.synthetic:
            continue
        rate, twin_rate = group.summary(_RATE), twin.summary(_RATE)
        assert rate is not None and twin_rate is not None
        known = [
            floor
            for side in (group, twin)
            if (floor := floors.get(side.cell.stage, side.cell.workload, _RATE, side.kind))
        ]
        over = group.over_subscribed or twin.over_subscribed
        comparison = (
            None
            if over
            else compare(
                twin.values(_RATE),
                group.values(_RATE),
                direction=Direction.HIGHER,
                floor=max(known, key=lambda floor: floor.relative, default=None),
            )
        )
        ratio = ratio_of(group.values(_RATE), twin.values(_RATE))
        if comparison is not None and comparison.ratio is not None:
            ratio = comparison.ratio.inverse
        assert ratio is not None
        penalties.append(
            InputPenalty(
                group=group,
                twin=twin,
                rate=rate,
                twin_rate=twin_rate,
                value=1 - ratio.value,
                low=1 - ratio.high,
                high=1 - ratio.low,
                comparison=comparison,
            )
        )
    return penalties


def rate_factor(group: TrainGroup) -> float | None:
    """How many times the workload's own learning rate a step's mean gradient is taken, in the end.

    A sum over p ranks that train counts p times what their mean does; the linear rule multiplies by the
    global batch over the workload's own. None when the record does not hold that batch.
    """
    cell = group.cell
    layout = division(group)
    replicas = cell.ranks if layout is None else layout.replicas
    factor = float(replicas) if cell.reduce == "sum" else 1.0
    if cell.learning_rate_rule == "none":
        return factor
    workload_batch = own_batch(group)
    return factor * group.global_batch / workload_batch if workload_batch and group.global_batch else None


def own_batch(group: Group) -> int | None:
    """Return the workload's own batch, as its parameters say, or None."""
    for record in group.records:
        batch = record.parameters.get("batch")
        if isinstance(batch, int) and batch > 0:
            return batch
    return None


def rule_groups(groups: Sequence[TrainGroup]) -> list[TrainGroup]:
    """Return the groups of one workload that differ in the batch's rules alone, twins together.

    A family is one framework, strategy, precision, input and the like; it counts when on the same
    ranks it knows more than one reduction, rule or global batch. One rank of such a family is the
    start of each of its paths. Synthetic input has no path to compare.
    """
    real = [group for group in groups if not group.kind.synthetic]
    listed = []
    for members in grouped(real, lambda group: _family(group.cell)).values():
        ways: dict[int, set[tuple[str, str, int | None]]] = defaultdict(set)
        for group in members:
            cell = group.cell
            ways[cell.ranks].add((cell.reduce, cell.learning_rate_rule, group.global_batch))
        several = {ranks for ranks, seen in ways.items() if ranks > 1 and len(seen) > 1}
        if several:
            listed += [g for g in members if g.cell.ranks in several or g.cell.ranks == 1]
    return sorted(listed, key=_order)


def _family(cell: Cell) -> Cell:
    neutral = {
        "nodes": 1,
        "ranks_per_node": 1,
        "batch": None,
        "reduce": "mean",
        "learning_rate_rule": "none",
        "repeat": 0,
    }
    return cell.model_copy(update=neutral)


def _order(group: TrainGroup) -> tuple[str, str, str, int, int, str, str]:
    cell = group.cell
    return (
        cell.framework,
        cell.strategy,
        cell.precision,
        cell.ranks,
        group.global_batch or 0,
        cell.learning_rate_rule,
        cell.reduce,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SumTwins:
    """Two groups that differ in nothing but `reduce`; of one that only sums, the strategy too."""

    summed: TrainGroup
    mean: TrainGroup

    @property
    def published(self) -> str:
        """The strategy that sums because it was published so, or nothing."""
        name = self.summed.cell.strategy
        return name if name.startswith(_PUBLISHED) else ""


def sum_twins(groups: Sequence[TrainGroup]) -> list[SumTwins]:
    """Pair each group that sums with the one that takes the mean, most ranks first.

    On one rank both are the same training: no pair. A strategy that only sums has no such twin: its
    pair takes the mean on the same batches by another strategy, on as many ranks where there is one.
    """
    means = {group.cell: group for group in groups if not group.kind.summed}
    pairs = [
        SumTwins(summed=group, mean=twin)
        for group in groups
        if group.kind.summed
        and group.cell.ranks > 1
        and not group.kind.synthetic
        and (twin := means.get(_mean_of(group.cell)) or _nearest(group, means)) is not None
    ]
    return sorted(pairs, key=lambda pair: (-pair.summed.cell.ranks, pair.summed.cell.id))


def _mean_of(cell: TrainCell) -> TrainCell:
    return cell.model_copy(update={"reduce": "mean"})


def _nearest(group: TrainGroup, means: Mapping[TrainCell, TrainGroup]) -> TrainGroup | None:
    """Return the mean on the same path by another strategy, where this one never takes it."""
    if not group.cell.strategy.startswith(_PUBLISHED):
        return None
    alike = {"nodes": 1, "ranks_per_node": 1, "strategy": "", "network": None, "options": ()}
    wanted = _mean_of(group.cell).model_copy(update=alike)
    near = [mean for mean in means.values() if mean.cell.ranks > 1 and mean.cell.model_copy(update=alike) == wanted]
    ranks = group.cell.ranks
    return min(near, key=lambda mean: (abs(mean.cell.ranks - ranks), mean.cell.id), default=None)
