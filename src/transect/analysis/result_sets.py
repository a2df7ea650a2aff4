"""Comparison of two result sets: what changed between two runs of the same study."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from transect.analysis.comparisons import Comparison, compare
from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Floors, Group, group_records
from transect.analysis.statistics import NoiseFloor
from transect.domain.cell import Cell
from transect.domain.metrics import METRICS, Direction

__all__ = ["Change", "compare_result_sets"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One metric of one cell before and after; `comparison` is seen from the new side."""

    cell: Cell
    metric: str
    comparison: Comparison


def compare_result_sets(
    before: Iterable[AnyRecord], after: Iterable[AnyRecord], metrics: Iterable[str]
) -> list[Change]:
    """Compare each metric of every cell that both sets have, in order of the cells.

    The noise floor is the larger of the two sets' floors. Cells that only one set has and
    metrics without a better direction are left out.
    """
    old = {group.cell: group for group in group_records(before)}
    new = group_records(after)
    old_floors, new_floors = Floors(list(old.values())), Floors(new)
    names = [name for name in metrics if METRICS[name].direction is not Direction.NEUTRAL]
    changes = []
    for group in new:
        if group.cell not in old or group.wrong or old[group.cell].wrong:
            continue
        for name in names:
            floors = [_floor(floors, group, name) for floors in (old_floors, new_floors)]
            known = [floor for floor in floors if floor is not None]
            comparison = compare(
                group.values(name),
                old[group.cell].values(name),
                direction=METRICS[name].direction,
                floor=max(known, key=lambda floor: floor.relative, default=None),
            )
            if comparison is not None:
                changes.append(Change(cell=group.cell, metric=name, comparison=comparison))
    return changes


def _floor(floors: Floors, group: Group, name: str) -> NoiseFloor | None:
    return floors.get(group.cell.stage, group.cell.workload, name)
