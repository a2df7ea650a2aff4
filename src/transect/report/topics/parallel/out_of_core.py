"""Training past the memory: what each way to treat activations needs, costs and makes possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors, grouped
from transect.analysis.parallelism import STEP, median_of
from transect.analysis.scaling import TrainGroup
from transect.domain.axes.train import TrainCell
from transect.domain.record import Cause, Status

PLAIN = "plain"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRow:
    """One group of a sweep.

    `beside_fitting` sets its time per sample beside that of plain memory at the largest batch that
    fits into its budget, `beside_free` beside that of plain memory without a budget at its own batch.
    """

    group: TrainGroup
    fits: bool
    beside_fitting: Contrast | None
    beside_free: Contrast | None

    @property
    def times_what_fits(self) -> float | None:
        """Its batch over the largest that fits; None where that is not known."""
        if self.beside_fitting is None or not self.group.cell.batch:
            return None
        fitting = self.beside_fitting.base.cell.batch
        return self.group.cell.batch / fitting if fitting else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """Groups that differ in batch, memory and budget alone; `cell` is what they share."""

    cell: TrainCell
    rows: Sequence[MemoryRow]

    @property
    def budgets(self) -> list[int]:
        """The limits that were set, the tightest first."""
        given = {row.group.cell.memory_budget for row in self.rows}
        return sorted(budget for budget in given if budget is not None)

    def largest(self, memory: str, budget: int | None) -> TrainGroup | None:
        """Return the group of the largest batch that trained right within a budget, or None."""
        return _largest([row.group for row in self.rows], memory, budget)

    def too_large(self, memory: str, budget: int | None) -> TrainGroup | None:
        """Return the group of the smallest batch that ran out of memory, or None."""
        return min(
            (row.group for row in self.rows if _is(row.group, memory, budget) and ran_out(row.group)),
            key=lambda group: group.cell.batch,
            default=None,
        )


def per_sample(group: TrainGroup) -> list[float]:
    """Return the seconds of a step over its global batch, of every usable repeat."""
    return [value / group.cell.batch for value in group.values(STEP)] if group.cell.batch else []


def ran_out(group: TrainGroup) -> bool:
    """Whether a repeat ended for want of memory."""
    return any(record.status is Status.FAILED and record.cause is Cause.OUT_OF_MEMORY for record in group.records)


def _is(group: TrainGroup, memory: str, budget: int | None) -> bool:
    return group.cell.memory == memory and group.cell.memory_budget == budget


def _fits(group: TrainGroup) -> bool:
    return bool(group.ok) and not group.wrong and not ran_out(group)


def _largest(groups: Iterable[TrainGroup], memory: str, budget: int | None) -> TrainGroup | None:
    able = [group for group in groups if _is(group, memory, budget) and _fits(group)]
    return max(able, key=lambda group: (group.cell.batch, group.cell.id), default=None)


def sweeps(groups: Iterable[TrainGroup], floors: Floors, *, asked: bool = False) -> list[Sweep]:
    """Return a sweep for each training of which some cell has another memory, or a budget."""
    alike = grouped(groups, lambda group: group.cell.apart_from("memory", "memory_budget", "batch"))
    return [
        Sweep(
            cell=members[0].cell.changed(memory=PLAIN, memory_budget=None, batch=1),
            rows=[_row(group, members, floors, asked) for group in sorted(members, key=_order)],
        )
        for members in alike.values()
        if any(g.cell.memory != PLAIN or g.cell.memory_budget is not None for g in members)
    ]


def _order(group: TrainGroup) -> tuple[float, int, bool, str, str]:
    """The tightest budget first, then by batch, plain before the others."""
    cell = group.cell
    budget = float("inf") if cell.memory_budget is None else float(cell.memory_budget)
    return budget, cell.batch, cell.memory != PLAIN, cell.memory, cell.id


def _row(group: TrainGroup, members: Sequence[TrainGroup], floors: Floors, asked: bool) -> MemoryRow:
    cell = group.cell
    fitting = _largest(members, PLAIN, cell.memory_budget)
    free = [rival for rival in members if _is(rival, PLAIN, None) and rival.cell.batch == cell.batch]

    def against(rival: TrainGroup | None) -> Contrast | None:
        if rival is None or rival is group or not _fits(group) or median_of(rival, STEP) is None:
            return None
        return contrast(group, rival, floors, STEP, varies="memory", of=per_sample, asked=asked)

    return MemoryRow(
        group=group, fits=_fits(group), beside_fitting=against(fitting), beside_free=against(free[0] if free else None)
    )
