"""Which cells measure a claim, and which of them are held beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from transect.analysis.groups import Group, grouped
from transect.analysis.labels import settings_of
from transect.domain.axes.train import TrainCell
from transect.domain.cell import Cell
from transect.domain.claims import Measured
from transect.domain.metrics import Direction
from transect.domain.metrics import metric as metric_of
from transect.stats.noise import middle

_MISSING = object()


def matches(cell: Cell, wanted: Mapping[str, Any]) -> bool:
    """Whether a cell has the values on the axes, or among its options, that are asked for.

    One with other hyper-parameters than its workload's is another training, unless they are asked for.
    """
    if isinstance(cell, TrainCell) and cell.hyperparameters and "hyperparameters" not in wanted:
        return False
    return all(_is(value_of(cell, axis), value) for axis, value in wanted.items())


def value_of(cell: Cell, axis: str) -> Any:
    """Return the value of an axis, or of an option of that name; None where a cell has neither."""
    value = cell.get(axis, _MISSING)
    return settings_of(cell).get(axis) if value is _MISSING else value


def _is(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_is(value, one) for one in wanted)
    if isinstance(wanted, Mapping):
        return not _is(value, wanted.get("not"))
    if isinstance(wanted, str) and "*" in wanted:
        return value is not None and fnmatchcase(str(value), wanted)
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def selector_words(wanted: Mapping[str, Any]) -> str:
    """Write which cells are meant."""
    return ", ".join(f"{axis} {_listed(value)}" for axis, value in wanted.items()) or "any cells"


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return " or ".join(map(_listed, value))
    if isinstance(value, Mapping):
        return f"not {_listed(value.get('not'))}"
    return "none" if value is None else str(value)


def best_of(groups: Iterable[Group[Any]], metric: str) -> Group[Any] | None:
    """Return the right group with the best median, or None."""
    sign = -1.0 if metric_of(metric).direction is Direction.HIGHER else 1.0
    able = [
        (sign * middle(values), n, g) for n, g in enumerate(groups) if not g.wrong and (values := g.counted(metric))
    ]
    return min(able)[2] if able else None


def equal_work(measured: Measured, *named: str) -> Callable[[Group[Any]], Any]:
    """Return a key that groups share which may be held beside each other: all axes that nothing names, or those of `equal`."""
    axes = measured.equal
    if axes is not None:
        return lambda group: tuple(value_of(group.cell, axis) for axis in axes)
    apart = {*named, *(measured.cells if measured.over else ()), *measured.over}
    if "ranks" in apart:  # which follows from two axes
        apart |= {"nodes", "ranks_per_node"}

    def key(group: Group[Any]) -> Any:
        options = tuple((name, value) for name, value in settings_of(group.cell).items() if name not in apart)
        return group.cell.apart_from(*apart, "options"), options

    return key


def pairs_of(
    own: Iterable[Group[Any]], base: Iterable[Group[Any]], measured: Measured, *, all_of: bool = False
) -> list[tuple[Group[Any], Group[Any], int]]:
    """Return the best of each side for each equal work that both have, and of how many they are the best.

    `all_of`: all of the first side in the place of its best, where none of them may be apart.
    """
    key = equal_work(measured)
    rivals, found = grouped(base, key), []
    for place, members in grouped(own, key).items():
        rival = best_of(rivals.get(place, ()), measured.metric)
        for best in (
            [best_of([one], measured.metric) for one in members] if all_of else [best_of(members, measured.metric)]
        ):
            if best is not None and rival is not None and best is not rival:
                found.append((best, rival, (1 if all_of else len(members)) + len(rivals[place])))
    return found


def series_of(
    groups: Iterable[Group[Any]], measured: Measured, axis: str, values: Sequence[Any]
) -> list[dict[int, tuple[Group[Any], int]]]:
    """Return groups by the place of their value among those of an axis, a mapping for each series of equal work.

    Each with the number of groups of which it is the best.
    """
    found = []
    for members in grouped(groups, equal_work(measured, axis)).values():
        at = [[group for group in members if value_of(group.cell, axis) == value] for value in values]
        best = [(place, best_of(those, measured.metric), len(those)) for place, those in enumerate(at)]
        series = {place: (group, amount) for place, group, amount in best if group is not None}
        if len(series) > 1:
            found.append(series)
    return found
