"""Repeats beyond the least number: planned up to the most, run while a comparison is open."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from transect.domain.cell import Cell, axes_of
from transect.domain.errors import BadInput
from transect.domain.until import MARGIN, AnalysisPlan, ComparisonRule, RepeatUntil, decisive_looks
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage


def repeat_until_of(stage: Stage[Any], context: Context) -> RepeatUntil | None:
    """Return when a stage's cells are repeated no more: by its own section, or else by the study."""
    if stage.comparison is None or not stage.key:
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
    able = [stage for name in STAGES if (stage := STAGES.get(name)).comparison is not None and stage.key]
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


def more_repeats(cells: Iterable[Cell], stage: Stage[Any], context: Context) -> list[Cell]:
    """Return a stage's cells with all repeats up to `max_repeats`, and note those beyond `min_repeats`."""
    cells = list(cells)
    repeat_until = repeat_until_of(stage, context)
    if repeat_until is None:
        return cells
    amounts: dict[Cell, int] = {}
    limit = repeat_until.max_repeats
    for cell in cells:
        alike = cell.without_repeat()
        amounts[alike] = max(amounts.get(alike, 0), cell.repeat + 1)
    most = max(amounts.values(), default=0)
    if repeat_until.min_repeats is None and most and (most > limit or min(amounts.values()) >= limit):
        where = "repeat_until" if repeat_until is context.study.repeat_until else f"{stage.key}.repeat_until"
        raise BadInput(
            f"{context.where(where)}: max_repeats {limit} leaves nothing beyond the {most} repeats of "
            f"{stage.key}: expected a larger max_repeats, or min_repeats"
        )
    for alike, amount in amounts.items():
        least = repeat_until.min_repeats or amount
        context.repeats[alike] = (least, max(least, limit))
        for repeat in range(max(least, limit)):
            cell = alike.changed(repeat=repeat)
            if repeat >= amount:
                cells.append(cell)
            if repeat >= least:
                context.optional.add(cell)
    return [cell for cell in cells if cell.repeat < context.repeats[cell.without_repeat()][1]]


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

    `budget_s` is that of its block; `ways` counts what the study compares.
    """
    repeat_until, known = repeat_until_of(stage, context), context.repeats.get(cell.without_repeat())
    if repeat_until is None or known is None or stage.comparison is None:
        return None
    facts = _facts(context)
    return {
        "ci_half_width": repeat_until.ci_half_width,
        "equivalence_margin": margin_of(context),
        "decide": repeat_until.equivalence_margin is not None,
        "min_repeats": known[0],
        "max_repeats": known[1],
        "budget_s": repeat_until.budget_minutes and 60 * repeat_until.budget_minutes,
        "looks": facts.looks[cell.stage],
        "ways": facts.ways,
        "comparison": stage.comparison.stored(),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Facts:
    """Of all cells that may go on: how often a stage's are looked at, and how many pairs are compared."""

    looks: Mapping[str, int]
    ways: float


def _facts(context: Context) -> _Facts:
    """Count once what each cell's runner is told: all cells that may go on are known by then."""
    known = context.of_repeat_until
    if known is None or known[0] != len(context.repeats):
        looks: dict[str, int] = {}
        sets: dict[Hashable, set[Hashable]] = defaultdict(set)
        for cell, (least, most) in context.repeats.items():
            stage = STAGES.get(cell.stage)
            looks[cell.stage] = max(looks.get(cell.stage, 1), decisive_looks(least, most))
            for number, rule in enumerate(stage.comparison.each() if stage.comparison else ()):
                heat = tuple(cell.get(axis) for axis in rule.best_of) or cell
                sets[number, _rivals(cell, rule)].add(heat)
        pairs = sum(len(members) * (len(members) - 1) // 2 for members in sets.values())
        known = len(context.repeats), _Facts(looks=looks, ways=_in_steps(pairs))
        context.of_repeat_until = known
    facts: _Facts = known[1]
    return facts


def _in_steps(amount: int) -> float:
    """Return it, or up to a quarter more: one cell more in a study makes no block look at all of its own again.

    >>> [_in_steps(n) for n in (0, 4, 87, 100, 101)]
    [0.0, 4.0, 100.0, 100.0, 126.0]
    """
    if amount <= 10:
        return float(amount)
    # Ten steps a decade.
    steps = math.ceil(10 * math.log10(amount) - 1e-9)
    return float(math.ceil(10 ** (steps / 10) - 1e-9))


def _rivals(cell: Cell, rule: ComparisonRule) -> Hashable:
    """Return what cells that are compared have in common, as far as it is known before they ran."""
    kinds = (cell.get(name) for name, axis in axes_of(type(cell)).items() if axis.kind)
    return cell.stage, cell.workload, *kinds, *(cell.get(axis) for axis in rule.stratify_by)


def analysis_plan_of(context: Context) -> AnalysisPlan:
    """Return the plan of comparisons for the report."""
    looks = _facts(context).looks
    return AnalysisPlan(margin=margin_of(context), looks={stage: looks[stage] for stage in sorted(looks)})
