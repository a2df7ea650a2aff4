"""What cells are called: short labels, and an order, from the axes that their stage names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from transect.analysis.proper_names import OF_AXIS, OPTION_WORDS, WITH
from transect.domain.cell import Axis, Cell, axes_of, counted

# Both numbers together have one label, and repeats of a group have none.
_APART = frozenset({"nodes", "ranks_per_node", "repeat"})
# What a name for people says of its own.
_SAID = _APART | {"runtime", "framework", "benchmark", "strategy", "exporter", "workload", "ranks", "threads", "engine"}
_RANKS = counted("rank")


class _HasCell(Protocol):
    @property
    def cell(self) -> Cell: ...


G = TypeVar("G", bound=_HasCell)


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

    def __init__(self, cells: Sequence[Cell], shown: Set[str], extra: Sequence[str]) -> None:
        self._cells, self._shown, self._extra = cells, shown, extra
        # Which axes of a class of cells are shown, the names apart from the others.
        self._shown_axes = cache(self._axes)

    def __getitem__(self, cell: Cell) -> str:
        if cell not in self._all:
            raise KeyError(cell)
        return " · ".join(part for part in self._parts(cell) if part) or cell.id

    def __iter__(self) -> Iterator[Cell]:
        return iter(dict.fromkeys(self._cells))

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> frozenset[Cell]:
        return frozenset(self._cells)

    def _axes(self, kind: type[Cell]) -> tuple[list[tuple[str, Axis]], list[tuple[str, Axis]]]:
        axes = [(name, axis) for name, axis in axes_of(kind).items() if name in self._shown - _APART]
        names = [pair for pair in axes if pair[1].name]
        # What is said of another one, `from torch-dynamo`, follows it.
        names.sort(key=lambda pair: pair[1].label is not str)
        return names, [pair for pair in axes if not pair[1].name]

    def _parts(self, cell: Cell) -> Iterator[str]:
        names, others = self._shown_axes(type(cell))
        for name, axis in names:
            yield _text(cell, name, axis)
        if "nodes" in self._shown:
            yield f"{cell.nodes}x{cell.ranks_per_node} ranks"
        if "ranks" in self._shown:
            yield _RANKS(cell.ranks)
        for name, axis in others:
            yield _text(cell, name, axis)
        for name in self._extra:
            if name in self._shown and cell.get(name) is not None:
                yield f"{name} {cell.get(name)}"


def group_labels(groups: Iterable[_HasCell], always: Iterable[str] = (), never: Iterable[str] = ()) -> Labels:
    """Short label of each group: its names, and only those axes in which the groups differ.

    A workload is named where there are several. Where numbers of nodes differ, `2x4 ranks` stands
    for 2 nodes with 4 ranks on each. Axes in `never` are left out all the same.
    """
    cells = [group.cell for group in groups]
    return Labels(cells, *_shown(cells, always, never))


def _shown(cells: Sequence[Cell], always: Iterable[str], never: Iterable[str]) -> tuple[set[str], list[str]]:
    """Return the axes that are told of some cells, and those of them that no class describes."""
    described: dict[str, Axis] = {}
    for kind in dict.fromkeys(map(type, cells)):
        described |= axes_of(kind)
    extra = sorted({name for cell in cells for name in other_axes(cell)})
    held = list(map(vars, cells))
    shown = {axis for axis in (*described, "ranks") if _differs(cells, held, axis)}
    shown |= {axis for axis in extra if len({repr(cell.get(axis)) for cell in cells}) > 1}
    shown |= {name for name, axis in described.items() if axis.name and name != "workload"}
    shown |= set(always)
    # Without its nodes, ranks say it all; with them they say it again.
    shown -= {"ranks"} if "nodes" in shown else set()
    return shown - set(never), extra


def people_name(cell: Cell, beside: Iterable[Cell] = (), always: Iterable[str] = (), never: Iterable[str] = ()) -> str:
    """Name a cell in a sentence: `PyTorch on 2 processes with MPI all-reduce (batch 32)`.

    Its framework, runtime or benchmark by the name that people know; of the rest only in what it differs from those
    `beside` it, and the axes in `always`: `ranks` says on how many cores or processes it ran.
    """
    cells = [cell, *beside]
    shown, extra = _shown(cells, always, never)
    kernel, settings = _option_words(cell, cells)
    named = ((axis, cell.get(axis)) for axis in ("runtime", "framework", "benchmark", "engine"))
    name = kernel or next((word(axis, value) for axis, value in named if value), "")
    if "aggregation" in shown:
        by, how = (
            any(len({other.get(axis) for other in cells}) > 1 for axis in axes)
            for axes in (("engine", "framework", "runtime"), ("aggregation", "options"))
        )
        # Who computes a federation, or what is made of its updates: both only where cells differ in both.
        by |= "engine" in always
        name = cell.get("aggregation") if how and not by else name
        settings = [cell.get("aggregation"), *settings] if how and by else settings
        shown.discard("aggregation")
    parts = [name or word("workload", cell.workload or cell.stage)]
    if {"ranks", "nodes", "ranks_per_node", "threads"} & shown:
        parts.append(_place_words(cell))
    for axis in ("strategy", "exporter"):
        value = cell.get(axis)
        # On one rank there is nothing to join, unless ways are set beside each other there.
        alone = axis == "strategy" and (value == "single" or (cell.ranks == 1 and len({c.ranks for c in cells}) > 1))
        if axis in shown and value and not alone and value != _usual(type(cell), axis):
            parts.append(f"{WITH.get(axis, 'with')} {word(axis, value)}")
    told = _SAID | {"options" if settings_of(cell) else ""}
    rest = [_text(cell, name, axis) for name, axis in axes_of(type(cell)).items() if name in shown - told]
    rest += [f"{name} {cell.get(name)}" for name in extra if name in shown and cell.get(name) is not None]
    more = ", ".join(filter(None, [*settings, *rest]))
    return " ".join(filter(None, parts)) + (f" ({more})" if more else "")


def _option_words(cell: Cell, cells: Iterable[Cell]) -> tuple[str, list[str]]:
    """Return what a benchmark's cell computes with, and its other options, where these differ among cells.

    A kernel of several programming models is called after the model.
    """
    every = [settings_of(other) for other in cells]
    own = every[0]
    differing = [name for name in sorted(own) if len({options.get(name) for options in every}) > 1]
    kernel = word("implementation", own["implementation"]) if "implementation" in own else ""
    said = (OPTION_WORDS.get(name, f"{name} {{}}").format(own[name]) for name in differing if name != "implementation")
    return kernel, [text.strip() for text in said]


def settings_of(cell: Cell) -> dict[str, Any]:
    """Return a cell's options by name; an axis of that name that is a word has none."""
    found = cell.get("options")
    return dict(found) if isinstance(found, tuple) else {}


def word(axis: str, value: Any) -> str:
    """Return what people call a value of an axis: `PyTorch` for the framework `torch`.

    >>> word("runtime", "python"), word("exporter", "dynamo"), word("framework", "mine")
    ('ONNX Runtime (Python)', 'torch.export', 'mine')
    """
    return OF_AXIS.get(axis, {}).get(value, str(value))


def _place_words(cell: Cell) -> str:
    if cell.device != "cpu":
        return f"on {counted('GPU')(cell.ranks)}" + (f" of {cell.nodes} nodes" if cell.nodes > 1 else "")
    if cell.nodes > 1:
        return f"on {cell.nodes} nodes of {_processes(cell.ranks_per_node)}"
    if cell.ranks == 1:
        return "on one core" if cell.threads == 1 else f"on {cell.threads} threads"
    threads = f" of {cell.threads} threads" if cell.threads > 1 else ""
    return f"on {_processes(cell.ranks)}{threads}"


def _processes(amount: int) -> str:
    return "1 process" if amount == 1 else f"{amount} processes"


def _differs(cells: Sequence[Cell], held: Sequence[dict[str, Any]], axis: str) -> bool:
    """Whether cells, of which `held` are the fields, differ in an axis: asked for every axis of thousands."""
    if axis == "ranks":
        return (
            any(_differs(cells, held, name) for name in ("nodes", "ranks_per_node"))
            and len({cell.ranks for cell in cells}) > 1
        )
    try:
        values = list(map(itemgetter(axis), held))
    except KeyError:
        values = [cell.get(axis) for cell in cells]
    # To count goes by what is the same object, and looks into nothing.
    return bool(values) and values.count(values[0]) < len(values)


def in_order(groups: Iterable[G]) -> list[G]:
    """Sort groups by the axes of their cells: workload, other names, ranks, then numbers and words; last by id."""
    made = sorted(((_axis_order(group.cell), group) for group in groups), key=itemgetter(0))
    # An id takes longer to make than all the rest.
    alike = ([group for _, group in members] for _, members in groupby(made, key=itemgetter(0)))
    return [
        group
        for members in alike
        for group in (sorted(members, key=lambda group: group.cell.id) if len(members) > 1 else members)
    ]


def _axis_order(cell: Cell) -> tuple[tuple[int, float, str], ...]:
    axes = axes_of(type(cell))
    names = [name for name, axis in axes.items() if axis.name and name != "workload"]
    unnamed = [name for name, axis in axes.items() if not axis.name and name not in _APART]
    values = [cell.workload, *map(cell.get, names), cell.ranks, *map(cell.get, unnamed)]
    return tuple(_place(value) for value in values)


def _place(value: Any) -> tuple[int, float, str]:
    """Make values of all types comparable: nothing, then numbers, then texts."""
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, (int, float)):
        return (1, float(value), "")
    return (2, 0.0, str(value))
