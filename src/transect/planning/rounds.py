"""Which blocks optional repeats belong to: those of the cells that they repeat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

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

    Cells that take turns stand together, one repeat of all after another. Where more repeats may follow, each round of
    repeats runs before the next, and those that may not be needed come last.
    """
    cells = list(cells)
    first: dict[Hashable, int] = {}
    for planned in cells:
        first[_heat(planned)] = min(planned.order, first.get(_heat(planned), planned.order))

    def place(planned: Planned) -> tuple[int, ...]:
        turn, within, repeat = turns[planned.cell.stage], places[planned.key], planned.cell.repeat
        heat, order = first[_heat(planned)], planned.order
        if planned.optional:
            return 1, repeat, turn, within, heat, order
        in_turn = planned.heat or "repeat_until" in planned.spec
        return 0, turn, within, repeat if in_turn else 0, heat, order

    return sorted(cells, key=place)


def _heat(planned: Planned) -> Hashable:
    """Return what a cell shares with those that take turns with it."""
    return (planned.cell.stage, planned.heat, planned.cell.repeat) if planned.heat else planned.key


def cut(ordered: Sequence[Planned], room: int) -> list[tuple[Planned, ...]]:
    """Cut a shape's cells into blocks of `room` cells that have to run.

    Optional repeats stay with the others of their cell, whose comparison they are for; and what takes turns stays
    together, where there is room.
    """
    further = any(planned.optional for planned in ordered)

    def alone(planned: Planned) -> Hashable:
        return planned.cell.without_repeat() if further else planned.key

    def together(planned: Planned) -> Hashable:
        if not planned.heat:
            return alone(planned)
        return (planned.cell.stage, planned.heat) if further else _heat(planned)

    parts: list[list[Planned]] = [[]]
    filled = 0
    for heat in _by(ordered, together):
        for members in [heat] if _required(heat) <= room else _by(heat, alone):
            if parts[-1] and filled + _required(members) > room:
                parts.append([])
                filled = 0
            parts[-1] += members
            filled += _required(members)
    places = {planned.key: place for place, planned in enumerate(ordered)}
    return [tuple(sorted(part, key=lambda planned: places[planned.key])) for part in parts]


def _by(cells: Iterable[Planned], key: Callable[[Planned], Hashable]) -> list[list[Planned]]:
    found: dict[Hashable, list[Planned]] = defaultdict(list)
    for planned in cells:
        found[key(planned)].append(planned)
    return [*found.values()]


def _required(cells: Iterable[Planned]) -> int:
    return sum(not planned.optional for planned in cells)
