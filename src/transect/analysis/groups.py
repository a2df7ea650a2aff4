"""Repeats of one point gathered into a group: the unit that is summarised and compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from transect.analysis.statistics import NoiseFloor, Summary, noise_floor, summarise
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status

__all__ = ["Floors", "Group", "group_labels", "group_records", "is_wrong"]

_UNIT_AXES: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("ranks", lambda cell: f"{cell.ranks} rank" + ("s" if cell.ranks > 1 else "")),
    ("nodes", lambda cell: f"{cell.nodes} node" + ("s" if cell.nodes > 1 else "")),
    ("threads", lambda cell: f"{cell.threads} thread" + ("s" if cell.threads > 1 else "")),
    ("batch", lambda cell: f"batch {cell.batch}"),
    ("precision", lambda cell: cell.precision),
    ("device", lambda cell: cell.device),
    ("provider", lambda cell: cell.provider or ""),
    # Cells on one node cross no network, unless the study says which one they are to use.
    ("network", lambda cell: cell.network or ("default network" if cell.nodes > 1 else "")),
)


@dataclass(frozen=True, kw_only=True)
class Group:
    """All records of one point of the grid, whatever their repeat and status.

    `ok` holds the records whose numbers may be used: status ok and a right result.
    """

    cell: Cell
    records: tuple[Record, ...]
    ok: tuple[Record, ...] = field(default=())

    @property
    def wrong(self) -> bool:
        """Whether any repeat gave a wrong result: such a group never wins anything."""
        return any(is_wrong(record) for record in self.records)

    @property
    def over_subscribed(self) -> bool:
        """Whether more ranks than cores ran: such a group carries no scaling claim."""
        return any(bool(record.details.get("over_subscribed")) for record in self.records)

    @property
    def disturbed(self) -> bool:
        """Whether other processes used the machine during any repeat."""
        return any(bool(record.details.get("disturbed")) for record in self.ok)

    def values(self, name: str, label: str | None = None) -> list[float]:
        """Return the metric's value of every usable repeat that has one, in repeat order."""
        found = (record.value(name, label) for record in self.ok)
        return [value for value in found if value is not None]

    def summary(self, name: str, label: str | None = None) -> Summary | None:
        """Summarise a metric over the usable repeats. None when no repeat has it."""
        return summarise(self.values(name, label))

    def detail(self, name: str) -> float | None:
        """Return a number from the first usable record's details, or None."""
        for record in self.ok:
            value = record.details.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return float(value)
        return None

    @property
    def global_batch(self) -> int | None:
        """Samples per step over all ranks, from the details or else the cell."""
        value = self.detail("global_batch")
        return int(value) if value is not None else self.cell.batch


def is_wrong(record: Record) -> bool:
    """Whether the record is known to be wrong: by its cause, or a loss outside its tolerance."""
    if record.cause in (Cause.WRONG_RESULT, Cause.DIVERGED):
        return True
    ratio = record.value("equality_ratio")
    return ratio is not None and ratio > 1


def group_records(records: Iterable[Record], stage: str | None = None) -> list[Group]:
    """Gather repeats, keyed by the cell without its repeat, in order of the cells' ids."""
    found: dict[Cell, list[Record]] = defaultdict(list)
    for record in records:
        if stage is None or record.stage == stage:
            found[record.cell.without_repeat()].append(record)
    groups = []
    for cell, members in found.items():
        members.sort(key=lambda record: (record.cell.repeat, record.cell_id))
        usable = tuple(r for r in members if r.status is Status.OK and not is_wrong(r))
        groups.append(Group(cell=cell, records=tuple(members), ok=usable))
    return sorted(groups, key=_order)


def _order(group: Group) -> tuple[str, str, str, str, str, int, int, int, str]:
    cell = group.cell
    return (
        cell.workload or "", cell.framework or cell.runtime or "", cell.strategy or "",
        cell.exporter or "", cell.provider or "", cell.ranks, cell.threads, cell.batch or 0,
        cell.id,
    )  # fmt: skip


def group_labels(groups: Sequence[Group], always: Iterable[str] = ()) -> dict[Cell, str]:
    """Short label of each group: its names, and only those axes in which the groups differ.

    Where numbers of nodes differ, `2x4 ranks` stands for 2 nodes with 4 ranks on each.
    """
    shown = set(always)
    for axis, _ in _UNIT_AXES:
        if len({getattr(group.cell, axis) for group in groups}) > 1:
            shown.add(axis)
    spread = "nodes" in shown
    shown -= {"nodes", "ranks"} if spread else set()
    frameworks = {group.cell.framework for group in groups}
    labels = {}
    for group in groups:
        cell = group.cell
        if cell.runtime:
            names = [cell.runtime, f"from {cell.exporter}" if cell.exporter else None]
            if len(frameworks) > 1:
                names.insert(0, cell.framework)
        else:
            names = [cell.benchmark, cell.source, cell.framework, cell.strategy, cell.exporter]
        parts = [name for name in names if name]
        parts += [f"{cell.nodes}x{cell.ranks_per_node} ranks"] if spread else []
        parts += [text(cell) for axis, text in _UNIT_AXES if axis in shown and text(cell)]
        labels[cell] = " · ".join(parts) or cell.id
    return labels


class Floors:
    """Noise floor per stage, workload and metric, from repeats of the same cell.

    Over-subscribed groups are left out, and disturbed ones as long as others have repeats.
    A workload without repeats takes the floor of all workloads of its stage.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = [group for group in groups if not group.over_subscribed]
        self._cache: dict[tuple[str, str | None, str], NoiseFloor | None] = {}

    def get(self, stage: str, workload: str | None, name: str) -> NoiseFloor | None:
        """Return the floor of one metric, or None when nothing was run twice."""
        key = (stage, workload, name)
        if key not in self._cache:
            staged = [group for group in self._groups if group.cell.stage == stage]
            quiet = [group for group in staged if not group.disturbed]
            tries = (
                [group for group in quiet if group.cell.workload == workload],
                quiet,
                [group for group in staged if group.cell.workload == workload],
                staged,
            )
            floors = (noise_floor(group.values(name) for group in some) for some in tries)
            self._cache[key] = next((floor for floor in floors if floor is not None), None)
        return self._cache[key]
