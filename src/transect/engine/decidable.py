"""Which claims of a work this machine can decide, told by the plan of their studies before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from transect.analysis.claim_cells import matches, selector_words, value_of
from transect.domain.cell import Cell
from transect.domain.claims import Claim, Measured, Work, takes_time
from transect.domain.errors import BadInput
from transect.domain.system import System
from transect.domain.until import MIN_RUNS
from transect.measure.provenance import available_cores
from transect.planning.plan import StudyPlan, make_plan
from transect.planning.skips import skips_of
from transect.planning.study import find_study, find_system
from transect.runtimes._cuda import no_cuda_reason

DECIDABLE, NOT_HERE, NOT_COMPARABLE = "can be decided here", "not here", "not comparable"


@dataclass(frozen=True, kw_only=True)
class PlannedStudy:
    """A study as it would run here: its plan and why cells would be skipped, or else why it cannot be planned."""

    name: str
    given: str
    plan: StudyPlan | None = None
    skips: Mapping[tuple[str, str], str | None] | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chance:
    """Whether a claim can be decided here, by which study, and otherwise why not."""

    claim: Claim
    verdict: str
    study: str = ""
    why: str = ""


Planner = Callable[[str], PlannedStudy]


def planner(system: str, results: Path, beside: Path) -> Planner:
    """Return what plans a study by its name, each once: a file of that name beside the work's goes first."""
    file = find_system(system)

    @cache
    def plan(name: str) -> PlannedStudy:
        own = next((path for end in (".yaml", ".yml") if (path := beside.parent / f"{name}{end}").is_file()), None)
        given = str(own) if own is not None and own != beside else name
        try:
            made = make_plan(find_study(given), file, results)
            return PlannedStudy(name=name, given=given, plan=made, skips=skips_of(made))
        except BadInput as error:
            return PlannedStudy(name=name, given=given, why=str(error))

    return plan


def chances(work: Work, plan: Planner) -> list[Chance]:
    """Say of each claim whether it can be decided here."""
    return [_chance(claim, plan) for claim in work.claims]


def to_run(work: Work, plan: Planner) -> dict[str, str]:
    """Return the studies that have to run for a work, by name, each with why it does not: empty for those that do.

    Of several studies that measure a claim the first runs that can decide it; of a claim that none can, the first that
    has any of its cells. Of a cluster's nodes nobody knows: all run.
    """
    found = {name: _of_plan(plan(name)) for name in work.studies}
    wanted: set[str] = set()
    for claim in work.claims:
        chance = _chance(claim, plan)
        first = chance.study or next((m.study for m in claim.measured if not found[m.study] and _any(m, plan)), "")
        wanted |= {first} - {""}
    for name in found.keys() - wanted:
        study = plan(name)
        if not found[name] and study.plan is not None and study.plan.system.scheduler == "none":
            found[name] = _not_needed(work, study)
    return found


def _not_needed(work: Work, study: PlannedStudy) -> str:
    measured = [(claim, one) for claim in work.claims for one in claim.measured if one.study == study.name]
    reasons = [_lacking(claim, one, study) for claim, one in measured]
    told = [why.removeprefix(f"{study.name}: ") for why in reasons if why]
    return "; ".join(dict.fromkeys(told)) if len(told) == len(reasons) else "other studies decide what it would"


def _of_plan(study: PlannedStudy) -> str:
    return study.why if study.plan is None else ""


def _any(measured: Measured, plan: Planner) -> bool:
    study = plan(measured.study)
    found = () if study.plan is None else _reasons(measured.stage, measured.cells, study, timed=True)
    return any(why is None for _, why in found)


def _chance(claim: Claim, plan: Planner) -> Chance:
    if claim.not_comparable:
        return Chance(claim=claim, verdict=NOT_COMPARABLE, why=claim.not_comparable)
    reasons = []
    for measured in claim.measured:
        study = plan(measured.study)
        why = f"{measured.study}: {study.why}" if study.plan is None else _lacking(claim, measured, study)
        if not why:
            return Chance(claim=claim, verdict=DECIDABLE, study=measured.study)
        reasons.append(why)
    return Chance(claim=claim, verdict=NOT_HERE, why="; ".join(dict.fromkeys(reasons)) or "no study measures it")


def _lacking(claim: Claim, measured: Measured, study: PlannedStudy) -> str:
    """Say which side of a claim no cell of a plan would measure; empty where all are there."""
    timed = takes_time(claim, measured)
    for said, wanted in _sides(claim, measured):
        found = list(_reasons(measured.stage if not measured.replicas else "profile", wanted, study, timed))
        reasons = [why for _, why in found]
        if not reasons:
            return f"{measured.study}: no cell of {said} on this system"
        if None not in reasons:
            return f"{measured.study}: {said}: {next(filter(None, reasons))}"
        runs = Counter(cell.without_repeat() for cell, why in found if why is None)
        if max(runs.values()) < MIN_RUNS and not measured.replicas:
            return f"{measured.study}: {said}: fewer than {MIN_RUNS} runs are planned, and of fewer nothing is decided"
    return ""


def _sides(claim: Claim, measured: Measured) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what cells there have to be: of the claim, of what it is compared with, and along its axis."""
    if measured.replicas:
        yield "a shared model's profile", {}
        return
    yield selector_words(measured.cells), measured.cells
    if measured.over:
        yield selector_words(measured.over), measured.cells | measured.over
    if measured.along is not None:
        for value in claim.axis_of(measured):
            yield f"{measured.along.axis} {value}", measured.cells | {measured.along.axis: value}


def _reasons(
    stage: str, wanted: Mapping[str, Any], study: PlannedStudy, timed: bool
) -> Iterator[tuple[Cell, str | None]]:
    assert study.plan is not None and study.skips is not None
    for planned in study.plan:
        if planned.cell.stage == stage and _fits(planned.cell, wanted):
            yield planned.cell, study.skips[planned.key] or _decides_nothing(planned.cell, study.plan.system, timed)


def _decides_nothing(cell: Cell, system: System, timed: bool) -> str | None:
    """Say why a cell that runs on this machine would decide nothing, as far as that is known; elsewhere nobody knows."""
    if system.scheduler != "none":
        return None
    cores = system.cores_per_node or available_cores()
    if timed and cell.ranks_per_node * cell.threads > cores:
        return f"{cell.ranks_per_node * cell.threads} ranks or threads would share {cores} cores"
    return no_cuda_reason() if cell.device == "cuda" else None


def _fits(cell: Cell, wanted: Mapping[str, Any]) -> bool:
    # What a cell calls `ranks` follows from two of its axes.
    ranks = {axis: value for axis, value in wanted.items() if axis == "ranks" and value_of(cell, axis) is None}
    if ranks and cell.ranks != ranks["ranks"]:
        return False
    return matches(cell, {axis: value for axis, value in wanted.items() if axis not in ranks})
