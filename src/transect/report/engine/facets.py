"""What rows, marks and findings are about: the values that the page's filter chooses among."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any
from weakref import WeakKeyDictionary

from transect.analysis.entries import Entry
from transect.analysis.groups import Group
from transect.domain.cell import Cell
from transect.domain.record import Record, Status
from transect.stats.comparisons import Comparison
from transect.stats.estimates import Estimate
from transect.stats.samples import NoiseFloor, Summary
from transect.stats.verdicts import Decision

# What the page filters by, in the order of its buttons, and the name of the cell beside them.
FACETS = ("workload", "framework", "strategy", "runtime", "ranks", "status")
_ALL = (*FACETS, "cell")

# What a row about something stands for, if it says so under one of these names.
_ABOUT = ("group", "record", "cell")
# How deep a row is searched that says nothing of the kind.
_DEPTH = 3
# Cells of one row: what speaks of more speaks of none in particular.
_MAX_CELLS = 24
_STATUSES = frozenset(status.value for status in Status)


@dataclass(frozen=True, slots=True)
class Facets:
    """The values of each facet that something is about; empty for a facet that it is not about.

    `cell` holds ids without the repeat, and `ranks` numbers as text.
    """

    workload: tuple[str, ...] = ()
    framework: tuple[str, ...] = ()
    strategy: tuple[str, ...] = ()
    runtime: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    cell: tuple[str, ...] = ()

    def __or__(self, other: Facets) -> Facets:
        """Join what two things speak of."""
        if other is NOTHING or self == other:
            return self
        joined = Facets(*(tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name)))) for name in _ALL))
        return joined if len(joined.cell) <= _MAX_CELLS else replace(joined, cell=joined.cell[: _MAX_CELLS + 1])


NOTHING = Facets()
# What speaks of no cell, however deep it is searched.
_NUMBERS = (str, bytes, int, float, Comparison, Decision, Estimate, NoiseFloor, Summary)


def facets_of(item: Any) -> Facets:
    """Return what an item is about; `NOTHING` where it is about no facet.

    `Facets` are themselves. Else a group, a record and a cell have the facets of their cell, a row has those of its
    `group`, `record` or `cell`, and anything with fields has those of all its fields, and those fields that have the
    name of a facet.
    """
    return _found(item, _DEPTH)


def _found(item: Any, depth: int) -> Facets:
    if item is None or isinstance(item, _NUMBERS):
        return NOTHING
    if isinstance(item, Group):
        return _of_group(item)
    if isinstance(item, Facets):
        return item
    if isinstance(item, Cell):
        return _of_cell(item, ())
    if isinstance(item, (Record, Entry)):
        return _of_cell(item.point, (item.status.value,))
    for name in _ABOUT:
        held = getattr(item, name, None)
        if isinstance(held, (Group, Record, Entry, Cell)):
            return _found(held, depth)
    return _of_parts(item, depth - 1) if depth else NOTHING


def _of_parts(item: Any, depth: int) -> Facets:
    """Join what the fields of a row, or the members of a list, are about."""
    joined = NOTHING
    for name, value in _parts(item, depth):
        if name in FACETS:
            joined |= _named(name, value)
        elif value is not None and not isinstance(value, _NUMBERS):
            joined |= _found(value, depth)
    return joined if len(joined.cell) <= _MAX_CELLS else replace(joined, cell=())


def _named(name: str, value: Any) -> Facets:
    """Take a field that has the name of a facet, if it holds what such a facet may."""
    kind = int if name == "ranks" else str
    if not isinstance(value, kind) or isinstance(value, bool) or value == "":
        return NOTHING
    # Benchmark runs and claims have words of their own for how they ended.
    if name == "status" and value not in _STATUSES:
        return NOTHING
    return Facets(**{name: (str(value),)})


def _parts(item: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if is_dataclass(item) and not isinstance(item, type):
        yield from ((name, getattr(item, name)) for name in _fields(type(item)))
    elif isinstance(item, dict) and depth == _DEPTH - 1:
        yield from ((str(name), value) for name, value in item.items())
    elif isinstance(item, tuple) and hasattr(item, "_fields"):
        yield from zip(item._fields, item, strict=True)
    elif isinstance(item, (tuple, list)):
        yield from (("", value) for value in item)


@cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


# What groups are about: a chart of thousands asks again for each of its marks.
_groups: WeakKeyDictionary[Group, Facets] = WeakKeyDictionary()


def _of_group(group: Group) -> Facets:
    known = _groups.get(group)
    if known is None:
        statuses = sorted({record.status.value for record in group.records})
        known = _groups[group] = _of_cell(group.cell, statuses)
    return known


def _of_cell(cell: Cell, status: Sequence[str]) -> Facets:
    found = {axis: cell.get(axis) for axis in ("workload", "framework", "strategy", "runtime")}
    return Facets(
        **{axis: (str(value),) for axis, value in found.items() if value not in (None, "")},
        ranks=(str(cell.ranks),),
        status=tuple(status),
        cell=(cell.without_repeat().id,),
    )


class FacetTable:
    """Numbers the facets of a page: an element carries a number, the page says once what it means."""

    def __init__(self) -> None:
        self._numbers: dict[Facets, int] = {}

    def number(self, item: Any) -> int | None:
        """Return the number of what an item is about; None where it says nothing of any facet."""
        found = facets_of(item)
        return None if found == NOTHING else self._numbers.setdefault(found, len(self._numbers))

    def data(self) -> dict[str, Any]:
        """Return the table as the page's script reads it.

        `names` are the facets, `values` the known values of each, `rows` holds for every number a list
        with a place, or a list of places, among the values of each facet, and null for none.
        """
        known = [sorted({v for row in self._numbers for v in getattr(row, name)}, key=_natural) for name in _ALL]
        places = [{value: place for place, value in enumerate(values)} for values in known]
        return {
            "names": list(_ALL),
            "values": known,
            "rows": [
                [_compact([at[value] for value in getattr(row, name)]) for name, at in zip(_ALL, places, strict=True)]
                for row in self._numbers
            ],
        }


def _compact(found: list[int]) -> list[int] | int | None:
    return found if len(found) > 1 else found[0] if found else None


def _natural(value: str) -> tuple[tuple[int, int, str], ...]:
    """Order 2 before 16, in names as well."""
    runs = ("".join(run) for _, run in groupby(value, lambda c: c.isascii() and c.isdigit()))
    return tuple((0, int(run), run) if run.isascii() and run.isdigit() else (1, 0, run) for run in runs)
