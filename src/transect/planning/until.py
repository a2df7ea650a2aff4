"""Repeats beyond the least number: planned up to the most, run while a pair is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.until import MARGIN, AnalysisPlan, RepeatUntil
from transect.planning.context import Context
from transect.planning.pairs import StagePairs, has, make_pairs
from transect.planning.stage import STAGES, Stage


def repeat_until_of(stage: Stage[Any], context: Context) -> RepeatUntil | None:
    """Return when a stage's cells are repeated no more: by its own section, or else by the study."""
    if not stage.pairs or not stage.key:
        return None
    of_section: RepeatUntil | None = getattr(context.section(stage.key), "repeat_until", None)
    return of_section or context.study.repeat_until


def margin_of(context: Context) -> float:
    """Return the margin within which two groups are the same, one for the whole report."""
    margins = {"equal_within": context.study.equal_within}
    if context.study.repeat_until is not None:
        margins["repeat_until.equivalence_margin"] = context.study.repeat_until.equivalence_margin
    for name in STAGES:
        stage = STAGES.get(name)
        of_section = getattr(context.section(stage.key), "repeat_until", None) if stage.key else None
        if of_section is not None:
            margins[f"{stage.key}.repeat_until.equivalence_margin"] = of_section.equivalence_margin
    given = {key: value for key, value in margins.items() if value is not None}
    if len(set(given.values())) > 1:
        listed = ", ".join(f"{key}: {100 * value:g} %" for key, value in given.items())
        raise BadInput(f"{context.file}: {listed}: expected one margin for the whole report")
    return next(iter(given.values()), MARGIN)


def check_repeat_until(context: Context) -> None:
    """Raise BadInput for a `repeat_until` that applies to no cell: it would be ignored."""
    able = [stage for name in STAGES if (stage := STAGES.get(name)).pairs and stage.key]
    going_on = {STAGES.get(cell.stage).key for cell in context.repeats}
    unused = [
        f"{stage.key}.repeat_until"
        for stage in able
        if getattr(context.section(stage.key), "repeat_until", None) and stage.key not in going_on
    ]
    if context.study.repeat_until is not None and not going_on:
        unused.insert(0, "repeat_until")
    if unused:
        keys = ", ".join(dict.fromkeys(stage.key for stage in able))
        raise BadInput(
            f"{context.where(unused[0])}: no cell of this study is repeated by it: expected cells of a stage that "
            f"compares its repeats ({keys})"
        )


def more_repeats(cells: Iterable[Cell], name: str, stage: Stage[Any], context: Context) -> list[Cell]:
    """Return a stage's cells with all repeats up to `max_repeats`, and note those beyond `min_repeats`, and its pairs."""
    cells = list(cells)
    amounts: dict[Cell, int] = {}
    for cell in cells:
        alike = cell.without_repeat()
        amounts[alike] = max(amounts.get(alike, 0), cell.repeat + 1)
    able = [point for point in amounts if stage.pairs and context.may_be_compared(point, stage.gpus(point))]
    pairs = make_pairs(stage.pairs, able, context.study.asks)
    repeat_until = repeat_until_of(stage, context)
    if repeat_until is not None:
        cells = _up_to_the_most(cells, amounts, repeat_until, stage, pairs, context)
    context.pairs[name] = pairs.with_repeats(amounts)
    return cells


def _up_to_the_most(
    cells: list[Cell],
    amounts: dict[Cell, int],
    repeat_until: RepeatUntil,
    stage: Stage[Any],
    pairs: StagePairs,
    context: Context,
) -> list[Cell]:
    """Return the cells with their optional repeats; `amounts` become what they may have."""
    limit, most = repeat_until.max_repeats, max(amounts.values(), default=0)
    if repeat_until.min_repeats is None and most and (most > limit or min(amounts.values()) >= limit):
        where = "repeat_until" if repeat_until is context.study.repeat_until else f"{stage.key}.repeat_until"
        raise BadInput(
            f"{context.where(where)}: max_repeats {limit} leaves nothing beyond the {most} repeats of "
            f"{stage.key}: expected a larger max_repeats, or min_repeats"
        )
    # Those that are measured in turn have as many repeats.
    of_heat: dict[str, int] = {}
    able = {alike: amount for alike, amount in amounts.items() if _speed_of(alike, stage) is not None}
    for alike, amount in able.items():
        heat = pairs.heat(alike)
        of_heat[heat] = max(of_heat.get(heat, 0), amount)
    for alike, amount in able.items():
        heat = pairs.heat(alike)
        least = repeat_until.min_repeats or (of_heat[heat] if heat else amount)
        # Without a pair there is nothing to decide, and nothing to go on for but the cell's own interval.
        going_on = bool(heat) or repeat_until.ci_half_width is not None
        context.repeats[alike] = (least, max(least, limit) if going_on else least)
        for repeat in range(context.repeats[alike][1]):
            cell = alike.changed(repeat=repeat)
            if repeat >= amount:
                cells.append(cell)
            if repeat >= least:
                context.optional.add(cell)
        amounts[alike] = context.repeats[alike][1]
    return [cell for cell in cells if cell.repeat < amounts[cell.without_repeat()]]


def _speed_of(cell: Cell, stage: Stage[Any]) -> str | None:
    """Return the metric whose interval may end a cell's repeats; None for a cell of which nothing is compared."""
    metrics = (rule.metric for rule in stage.pairs if has(cell, rule.both))
    # Not what the seed of a repeat decides too.
    return next((metric for metric in metrics if metric != "time_to_quality"), None)


def note_prerequisites(planned: Mapping[str, Iterable[Cell]], asked: Mapping[str, set[str]], context: Context) -> None:
    """Note cells that nobody needs but repeats that may not be needed. Stages: the last one first."""
    for name, cells in planned.items():
        for cell in cells:
            takers = list(context.takers(cell))
            alone = cell.id not in asked[name] and takers
            if alone and all(taker in context.optional for taker in takers):
                context.optional.add(cell)


def repeat_until_spec(cell: Cell, stage: Stage[Any], context: Context) -> dict[str, Any] | None:
    """Return what the runner of a block gets about a cell's repeats; None where all of them run.

    `metric` is that of `ci_half_width`; `equivalence_margin` is None where pairs do not decide, `budget_s` that of its block.
    """
    repeat_until, known = repeat_until_of(stage, context), context.repeats.get(cell.without_repeat())
    if repeat_until is None or known is None:
        return None
    margin = margin_of(context)
    return {
        "metric": _speed_of(cell, stage),
        "ci_half_width": repeat_until.ci_half_width,
        "equivalence_margin": margin if repeat_until.equivalence_margin is not None else None,
        "margin": margin,
        "min_repeats": known[0],
        "max_repeats": known[1],
        "budget_s": repeat_until.budget_minutes and 60 * repeat_until.budget_minutes,
    }


def analysis_plan_of(context: Context) -> AnalysisPlan:
    """Return the plan of comparisons for the report."""
    pairs = tuple(pair for of_stage in context.pairs.values() for pair in of_stage)
    return AnalysisPlan(margin=margin_of(context), pairs=pairs)
