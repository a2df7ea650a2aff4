"""What cells are called: short labels, and an order, from the axes that their stage names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from operator import itemgetter
from typing import Any, Protocol

from transect.domain.cell import Axis, Cell, axes_of, counted

__all__ = ["Labels", "axis_order", "group_labels", "other_axes"]

# Both numbers together have one label, and repeats of a group have none.
_APART = frozenset({"nodes", "ranks_per_node", "repeat"})
_RANKS = counted("rank")


class _HasCell(Protocol):
    @property
    def cell(self) -> Cell: ...


@cache
def _usual(kind: type[Cell], axis: str) -> Any:
    return kind.model_fields[axis].default


def other_axes(cell: Cell) -> dict[str, Any]:
    """Return axes that no class describes: those of a stage that this installation lacks."""
    return cell.model_extra or {}


def _text(cell: Cell, name: str, axis: Axis) -> str:
    value = cell.get(name)
    if name == "network" and value is None:
        # Cells on one node cross no network, unless the study says which one they are to use.
        return "default network" if cell.nodes > 1 else ""
    # The usual precision, reduction, rule and input go without saying.
    if value is None or (axis.kind and value == _usual(type(cell), name)):
        return ""
    return axis.label(value)


class Labels(Mapping[Cell, str]):
    """Short labels of some cells, each written when it is asked for: few of many are shown."""

    def __init__(
        self, cells: Sequence[Cell], shown: Set[str], extra: Sequence[str], *, spread: bool
    ) -> None:
        self._cells, self._shown, self._extra, self._spread = cells, shown, extra, spread
        self._known: frozenset[Cell] | None = None

    def __getitem__(self, cell: Cell) -> str:
        if cell not in self._all:
            raise KeyError(cell)
        parts = _parts(cell, self._shown, self._extra, spread=self._spread)
        return " · ".join(part for part in parts if part) or cell.id

    def __iter__(self) -> Iterator[Cell]:
        return iter(dict.fromkeys(self._cells))

    def __len__(self) -> int:
        return len(self._all)

    @property
    def _all(self) -> frozenset[Cell]:
        if self._known is None:
            self._known = frozenset(self._cells)
        return self._known


def group_labels(
    groups: Iterable[_HasCell], always: Iterable[str] = (), never: Iterable[str] = ()
) -> Labels:
    """Short label of each group: its names, and only those axes in which the groups differ.

    A workload is named where there are several. Where numbers of nodes differ, `2x4 ranks` stands
    for 2 nodes with 4 ranks on each. Axes in `never` are left out all the same.
    """
    cells = [group.cell for group in groups]
    described: dict[str, Axis] = {}
    for kind in dict.fromkeys(map(type, cells)):
        described |= axes_of(kind)
    extra = sorted({name for cell in cells for name in other_axes(cell)})
    shown = {axis for axis in (*described, "ranks") if _differs(cells, axis)}
    shown |= {axis for axis in extra if len({repr(cell.get(axis)) for cell in cells}) > 1}
    shown |= {name for name, axis in described.items() if axis.name and name != "workload"}
    shown |= set(always)
    spread = "nodes" in shown
    shown -= {"ranks"} if spread else set()
    return Labels(cells, shown - set(never), extra, spread=spread)


def _differs(cells: Sequence[Cell], axis: str) -> bool:
    if axis == "ranks":
        values = {cell.ranks for cell in cells}
    elif cells and axis in cells[0].__dict__ and len(set(map(type, cells))) == 1:
        # Of one class: this is done for every axis of thousands of cells.
        values = set(map(itemgetter(axis), map(vars, cells)))
    else:
        values = {cell.get(axis) for cell in cells}
    return len(values) > 1


def _parts(cell: Cell, shown: Set[str], extra: Iterable[str], *, spread: bool) -> Iterable[str]:
    axes = [(name, axis) for name, axis in axes_of(type(cell)).items() if name in shown - _APART]
    names = [pair for pair in axes if pair[1].name]
    # What is said of another one, `from torch-dynamo`, follows it.
    for name, axis in sorted(names, key=lambda pair: pair[1].label is not str):
        yield _text(cell, name, axis)
    if spread:
        yield f"{cell.nodes}x{cell.ranks_per_node} ranks"
    if "ranks" in shown:
        yield _RANKS(cell.ranks)
    for name, axis in axes:
        if not axis.name:
            yield _text(cell, name, axis)
    for name in extra:
        if name in shown and cell.get(name) is not None:
            yield f"{name} {cell.get(name)}"


def axis_order(cell: Cell) -> tuple[tuple[int, float, str], ...]:
    """Return what cells are sorted by: workload, other names, ranks, then numbers and words."""
    axes = axes_of(type(cell))
    names = [name for name, axis in axes.items() if axis.name and name != "workload"]
    rest = [name for name, axis in axes.items() if not axis.name and name not in _APART]
    values = [cell.workload, *map(cell.get, names), cell.ranks, *map(cell.get, rest), cell.id]
    return tuple(_place(value) for value in values)


def _place(value: Any) -> tuple[int, float, str]:
    """Make values of all types comparable: nothing, then numbers, then texts."""
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, (int, float)):
        return (1, float(value), "")
    return (2, 0.0, str(value))
