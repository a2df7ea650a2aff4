"""Repeats of one point gathered into a group: the unit that is summarised and compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from transect.analysis.kinds import Kind, kind_of
from transect.analysis.statistics import (
    NoiseFloor,
    Summary,
    noise_floor,
    paired_noise_floor,
    summarise,
)
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status

__all__ = ["Floors", "Group", "group_labels", "group_records", "is_wrong"]

_UNUSUAL = {"linear": "linear rate", "files": "from files", "synthetic": "synthetic input"}

_UNIT_AXES: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("ranks", lambda cell: f"{cell.ranks} rank" + ("s" if cell.ranks > 1 else "")),
    ("nodes", lambda cell: f"{cell.nodes} node" + ("s" if cell.nodes > 1 else "")),
    ("threads", lambda cell: f"{cell.threads} thread" + ("s" if cell.threads > 1 else "")),
    ("batch", lambda cell: f"batch {cell.batch}"),
    # The usual precision, reduction, rule and input go without saying.
    ("precision", lambda cell: cell.precision if cell.precision != "fp32" else ""),
    ("device", lambda cell: cell.device),
    ("provider", lambda cell: cell.provider or ""),
    ("reduce", lambda cell: "sum of gradients" if cell.reduce == "sum" else ""),
    ("learning_rate_rule", lambda cell: _UNUSUAL.get(cell.learning_rate_rule, "")),
    ("input", lambda cell: _UNUSUAL.get(cell.input, "")),
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
    def kind(self) -> Kind:
        """Which training it is: groups of another kind are no base for it."""
        return kind_of(self.cell)

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

    def by_repeat(self, name: str) -> dict[int, float]:
        """Return the metric's value by repeat: a repeat has one seed in all groups."""
        found = ((record.cell.repeat, record.value(name)) for record in self.ok)
        return {repeat: value for repeat, value in found if value is not None}

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
    """Whether it is known to be wrong: by its cause, or loss or weights outside their tolerance."""
    if record.cause in (Cause.WRONG_RESULT, Cause.DIVERGED):
        return True
    ratios = (record.value(name) for name in ("equality_ratio", "weights_equality_ratio"))
    return any(ratio is not None and ratio > 1 for ratio in ratios)


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


def group_labels(
    groups: Sequence[Group], always: Iterable[str] = (), never: Iterable[str] = ()
) -> dict[Cell, str]:
    """Short label of each group: its names, and only those axes in which the groups differ.

    Where numbers of nodes differ, `2x4 ranks` stands for 2 nodes with 4 ranks on each. Axes in
    `never` are left out all the same.
    """
    shown = set(always)
    for axis, _ in _UNIT_AXES:
        if len({getattr(group.cell, axis) for group in groups}) > 1:
            shown.add(axis)
    spread = "nodes" in shown
    shown -= {"nodes", "ranks"} if spread else set()
    shown -= set(never)
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
    Without repeats of its own kind a workload takes the floor of its other kinds, then that of all
    workloads of its stage. Synthetic input is asked for by its kind, or else comes last.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = [group for group in groups if not group.over_subscribed]
        self._cache: dict[tuple[str, str | None, str, Kind | None], NoiseFloor | None] = {}

    def get(
        self, stage: str, workload: str | None, name: str, kind: Kind | None = None
    ) -> NoiseFloor | None:
        """Return the floor of one metric, or None when nothing was run twice."""
        key = (stage, workload, name, kind)
        if key not in self._cache:
            floors = (
                noise_floor(group.values(name) for group in some)
                for some in self._tries(stage, workload, kind)
            )
            self._cache[key] = next((floor for floor in floors if floor is not None), None)
        return self._cache[key]

    def paired(self, stage: str, workload: str | None, name: str, kind: Kind) -> NoiseFloor | None:
        """Return the floor for `compare_paired`: without what is due to a repeat's seed."""
        floors = (
            paired_noise_floor(group.by_repeat(name) for group in some)
            for some in self._tries(stage, workload, kind)
        )
        return next((floor for floor in floors if floor is not None), None)

    def _tries(self, stage: str, workload: str | None, kind: Kind | None) -> Iterator[list[Group]]:
        """Yield sets of groups to take the floor from, the closest first."""
        staged = [group for group in self._groups if group.cell.stage == stage]
        quiet = [group for group in staged if not group.disturbed]
        for some in (quiet, staged):
            own = [group for group in some if group.cell.workload == workload]
            if kind is not None:
                yield [group for group in own if group.kind == kind]
            yield [group for group in own if not group.kind.synthetic]
            yield [group for group in some if not group.kind.synthetic]
        yield staged
