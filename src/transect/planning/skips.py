"""Cells of a plan that would be skipped, and grids of which nothing would run."""

from __future__ import annotations

from transect.domain.errors import FAULTS
from transect.planning.context import Context
from transect.planning.expand import reason_to_skip
from transect.planning.plan import StudyPlan
from transect.planning.stage import STAGES, ordered_stages

# By stage and id.
Skips = dict[tuple[str, str], str | None]


def skips_of(plan: StudyPlan) -> Skips:
    """Return why each cell would be skipped, or None; what a plug-in raises becomes the cell's record in a run."""
    found: Skips = {}
    for planned in plan:
        try:
            stage = STAGES.get(planned.cell.stage)
            found[planned.key] = reason_to_skip(planned.cell) or stage.refuses(planned.cell, planned.spec)
        except FAULTS as error:
            found[planned.key] = f"a plug-in raised {type(error).__name__}: {error}"
    return found


def empty_grids(plan: StudyPlan, skips: Skips) -> dict[str, list[str]]:
    """Return by its key in the study (`train.grids.0`) why nothing of a grid would run: each reason once."""
    context = Context(plan.study, plan.file, plan.system)
    for name in plan.cells:
        context.cells[name] = [planned.cell for planned in plan.stage(name).values()]
    empty: dict[str, list[str]] = {}
    for name, stage in ordered_stages():
        section = context.section(stage.key) if stage.section is not None else None
        for number, grid in enumerate(getattr(section, "grids", ())):
            alone = section.model_copy(update={"grids": [grid]})  # type: ignore[union-attr]
            reasons = [skips[name, cell.id] for cell in stage.cells(alone, context)]
            if reasons and None not in reasons:
                empty[f"{stage.key}.grids.{number}"] = [*dict.fromkeys(map(str, reasons))]
    return empty
