"""Updates that wait for nobody, beside the training in step that as many replicas do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from transect.analysis.groups import Floors
from transect.analysis.parallelism import Beside, beside, division, median_of
from transect.analysis.scaling import TrainGroup

__all__ = ["TIME", "AsyncRow", "async_rows"]

TIME = "time_to_quality"
_IN_STEP = "mpi-allreduce"


@dataclass(frozen=True, kw_only=True, slots=True)
class AsyncRow:
    """A training whose gradients may be late: `staleness` in updates, its median and 95th percentile.

    `result` is its time to the target beside that of `other`, the all-reduce of as many replicas with the
    same batch; None where either did not reach it in every run, or there is no such cell.
    """

    group: TrainGroup
    staleness: float
    late: float | None
    other: TrainGroup | None
    result: Beside | None

    @property
    def reached(self) -> bool:
        """Whether every run reached its target."""
        return len(self.group.values(TIME)) == len(self.group.ok)


def async_rows(groups: Iterable[TrainGroup], floors: Floors) -> list[AsyncRow]:
    """Return a row for each group whose records tell a staleness, in order of the cells."""
    able = [group for group in groups if group.ok and not group.wrong]
    rows = []
    for group in able:
        staleness = median_of(group, "staleness")
        if staleness is None:
            continue
        other = next((one for one in able if _in_step(one, group)), None)
        both = other is not None and all(len(g.values(TIME)) == len(g.ok) for g in (group, other))
        rows.append(
            AsyncRow(
                group=group, staleness=staleness, late=median_of(group, "staleness_p95"),
                other=other, result=beside(group, other, floors, TIME) if both and other else None,
            )
        )  # fmt: skip
    return sorted(rows, key=lambda row: (row.group.cell.workload, row.staleness, row.group.cell.id))


def _in_step(one: TrainGroup, group: TrainGroup) -> bool:
    """Whether it does the same training, in step."""
    mine, its = division(group), division(one)
    return (
        one.cell.strategy == _IN_STEP and not one.cell.options
        and mine is not None and its is not None and mine.replicas == its.replicas
        and all(
            one.cell.get(axis) == group.cell.get(axis)
            for axis in ("workload", "framework", "batch", "threads", "device", "network")
        )
        and one.kind == group.kind
    )  # fmt: skip
