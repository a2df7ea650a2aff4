"""Repeats beyond the floor: planned up to the cap, run while a comparison is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.until import MARGIN, Aims, Until, looks_of
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage

__all__ = ["aims_of", "margin_of", "more_repeats", "note_prerequisites", "until_of", "until_spec"]


def until_of(stage: Stage, context: Context) -> Until | None:
    """Return how long a stage's cells go on: by its own section, or else by the study."""
    if stage.contest is None or not stage.key:
        return None
    own: Until | None = getattr(context.section(stage.key), "until", None)
    return own or context.study.until


def margin_of(context: Context) -> float:
    """Return the margin within which two groups are the same, one for the whole report.

    Raises BadInput where the study says several.
    """
    said = {"equal_within": context.study.equal_within}
    if context.study.until is not None:
        said["until.or_equal_within"] = context.study.until.or_equal_within
    for name in STAGES:
        stage = STAGES.get(name)
        own = getattr(context.section(stage.key), "until", None) if stage.key else None
        if own is not None:
            said[f"{stage.key}.until.or_equal_within"] = own.or_equal_within
    given = {key: value for key, value in said.items() if value is not None}
    if len(set(given.values())) > 1:
        told = ", ".join(f"{key}: {100 * value:g} %" for key, value in given.items())
        raise BadInput(f"{context.file}: {told}: expected one margin for the whole report")
    return next(iter(given.values()), MARGIN)


def more_repeats(cells: Iterable[Cell], stage: Stage, context: Context) -> list[Cell]:
    """Return a stage's cells with all repeats up to the cap, and note those beyond the floor."""
    cells = list(cells)
    until = until_of(stage, context)
    if until is None:
        return cells
    amounts: dict[Cell, int] = {}
    for cell in cells:
        alike = cell.without_repeat()
        amounts[alike] = max(amounts.get(alike, 0), cell.repeat + 1)
    for alike, amount in amounts.items():
        floor = until.floor or amount
        context.repeats[alike] = (floor, max(floor, until.cap))
        for repeat in range(max(floor, until.cap)):
            cell = alike.changed(repeat=repeat)
            if repeat >= amount:
                cells.append(cell)
            if repeat >= floor:
                context.optional.add(cell)
    return [cell for cell in cells if cell.repeat < context.repeats[cell.without_repeat()][1]]


def note_prerequisites(planned: Mapping[str, Iterable[Cell]], asked: Mapping[str, set[str]],
                       context: Context) -> None:  # fmt: skip
    """Note cells that nobody needs but repeats that may not be needed. Stages: the last one first."""
    for name, cells in planned.items():
        for cell in cells:
            takers = list(context.takers(cell))
            alone = cell.id not in asked[name] and takers
            if alone and all(taker in context.optional for taker in takers):
                context.optional.add(cell)


def until_spec(cell: Cell, stage: Stage, context: Context) -> dict[str, Any] | None:
    """Return what the runner of a block is told of a cell's repeats; None where all of them run.

    `budget_s` is the cell's share: all cells of the same `until` have the same.
    """
    until, known = until_of(stage, context), context.repeats.get(cell.without_repeat())
    if until is None or known is None or stage.contest is None:
        return None
    budget = until.minutes and 60 * until.minutes
    budget = until.node_hours and 3600 * until.node_hours if budget is None else budget
    alike = sum(until_of(STAGES.get(one.stage), context) is until for one in context.repeats)
    return {
        "interval": until.interval, "margin": margin_of(context),
        "decide": until.or_equal_within is not None, "floor": known[0], "cap": known[1],
        "budget_s": None if budget is None else budget / alike,
        "by_node": until.node_hours is not None, "looks": _looks(cell.stage, context),
        "contest": stage.contest.stored(),
    }  # fmt: skip


def _looks(stage: str, context: Context) -> int:
    counts = (
        len(looks_of(*known)) for cell, known in context.repeats.items() if cell.stage == stage
    )
    return max(counts, default=1)


def aims_of(context: Context) -> Aims:
    """Return what the report is told."""
    stages = {cell.stage for cell in context.repeats}
    looks = {stage: _looks(stage, context) for stage in sorted(stages)}
    return Aims(margin=margin_of(context), looks=looks)
