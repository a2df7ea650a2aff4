"""Cells that differ in one respect only: in their input, or in what the batch does to the rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group, grouped
from transect.analysis.parallelism import division
from transect.analysis.scaling import TrainGroup
from transect.domain.axes.train import TrainCell
from transect.domain.cell import Cell
from transect.stats.estimates import Estimate

# What the names of strategies begin with that sum as they were published, and cannot do otherwise.
_PUBLISHED = "published-"


def penalty(contrast: Contrast) -> Estimate:
    """Return what a group loses to its input: 1 - its rate over its synthetic twin's."""
    ratio = contrast.ratio
    return replace(ratio, value=1 - ratio.value, low=1 - ratio.high, high=1 - ratio.low)


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
