"""Which blocks optional repeats belong to: those of the cells that they repeat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from transect.domain.cell import Cell
from transect.planning.plan import Planned

S = TypeVar("S", bound=Hashable)


def by_shape(plan: Iterable[Planned], shape_of: Callable[[Planned], S], *, together: bool) -> dict[S, list[Planned]]:
    """Part cells by their shape. What only optional repeats need runs beside them, if at all.

    Where their cells are of several shapes, or not all in one block (`together` is false), one of two
    blocks would have to make it for the other: then it is not optional.
    """
    cells = list(plan)
    shapes = {planned.key: shape_of(planned) for planned in cells}
    takers: dict[tuple[str, str], set[S]] = defaultdict(set)
    for planned in cells:
        for source in planned.inputs.values():
            takers[source].add(shapes[planned.key])
    parts: dict[S, list[Planned]] = {}
    for planned in cells:
        shape = shapes[planned.key]
        if planned.optional and "repeat_until" not in planned.spec:
            if together and len(takers[planned.key]) == 1:
                [shape] = takers[planned.key]
            else:
                spec = {key: value for key, value in planned.spec.items() if key != "optional"}
                planned = replace(planned, spec=spec)
        parts.setdefault(shape, []).append(planned)
    return parts


def in_rounds(
    cells: Iterable[Planned], turns: Mapping[str, int], places: Mapping[tuple[str, str], int]
) -> list[Planned]:
    """Order a block: what feeds others first, and the rest in the study's random order.

    Where more repeats may follow, each round of repeats runs before the next, and those that may
    not be needed come last.
    """

    def place(planned: Planned) -> tuple[bool, int, int, int, int]:
        turn, within = turns[planned.cell.stage], places[planned.key]
        if planned.optional:
            return True, planned.cell.repeat, turn, within, planned.order
        repeat = planned.cell.repeat if "repeat_until" in planned.spec else 0
        return False, turn, within, repeat, planned.order

    return sorted(cells, key=place)


def cut(ordered: Sequence[Planned], room: int) -> list[tuple[Planned, ...]]:
    """Cut a shape's cells into blocks of `room` cells that have to run.

    Optional repeats stay with the others of their cell, whose comparison they are for.
    """
    if not any(planned.optional for planned in ordered):
        return [tuple(ordered[start : start + room]) for start in range(0, len(ordered), room)]
    alike: dict[Cell, list[Planned]] = defaultdict(list)
    for planned in ordered:
        alike[planned.cell.without_repeat()].append(planned)
    parts: list[list[Planned]] = [[]]
    for members in alike.values():
        required = sum(not planned.optional for planned in (*parts[-1], *members))
        if parts[-1] and required > room:
            parts.append([])
        parts[-1] += members
    places = {planned.key: place for place, planned in enumerate(ordered)}
    return [tuple(sorted(part, key=lambda planned: places[planned.key])) for part in parts]
