"""Run chosen cells of a study without Snakemake: for a person who works on a few of them."""

from __future__ import annotations

import json
from collections import Counter

from transect.domain.files import write_atomic
from transect.domain.paths import StudyPaths
from transect.domain.record import read_record
from transect.domain.terminal import say
from transect.engine.build_environment import made, sized
from transect.engine.claim import Claim, check_environments
from transect.engine.environment_use import note_uses
from transect.engine.interruption import end_abandoned
from transect.engine.job import load_job
from transect.engine.locks import leased
from transect.engine.plan_files import check_origin, write_plan
from transect.engine.progress import make_report_of, start_progress
from transect.engine.run_block import end_on_signals, run_jobs
from transect.engine.staleness import stamp_entry
from transect.engine.submissions import cancel_earlier
from transect.planning.blocks import make_blocks
from transect.planning.plan import Planned, StudyPlan


def with_inputs(plan: StudyPlan, cells: list[Planned]) -> list[Planned]:
    """Return the cells and all that runs before them, in that order."""
    ordered: dict[tuple[str, str], Planned] = {}

    def put(planned: Planned) -> None:
        if planned.key not in ordered:
            for stage, cell_id in planned.after:
                put(plan.cells[stage][cell_id])
            ordered[planned.key] = planned

    for planned in cells:
        put(planned)
    # A plan holds its stages in the order in which they run: those of one stage stay together.
    turns = {stage: turn for turn, stage in enumerate(plan.cells)}
    return sorted(ordered.values(), key=lambda planned: turns[planned.cell.stage])


def _build_environments(plan: StudyPlan, paths: StudyPaths, cells: list[Planned]) -> None:
    locks = {name: lock for planned in cells for name, lock in planned.environments.items()}
    check_environments(paths, locks)
    note_uses(plan, locks)
    for name, lock in sorted(locks.items()):
        stamp = paths.environment(name)
        if (stamp_entry(stamp, "status"), stamp_entry(stamp, "lock_hash")) != ("ok", lock):
            choice, log = plan.system.environments.get(name), stamp.with_suffix(".log")
            facts = made(name, choice, log, lock, paths.machine)
            write_atomic(stamp, json.dumps(sized(facts), indent=1) + "\n")


def run_chosen(plan: StudyPlan, cells: list[Planned], *, force: bool) -> dict[str, int]:
    """Run cells, and what they take that has no valid record, and make the report; return how many ended how.

    Repeats that may not be needed run where no others are chosen. `force`: also those chosen cells whose records hold. Raises BadInput when another run holds
    the study.
    """
    paths = StudyPaths(results=plan.paths.results.resolve(), study=plan.study.name)
    moved = check_origin(paths, plan.file)
    claim = Claim(paths.results, plan.study.name)
    claim.take()
    if moved:
        say(f"[transect] {moved}")
    end_on_signals()
    try:
        cancel_earlier(paths.runs, paths.study)
        end_abandoned(paths.results)
        blocks = make_blocks(plan)
        write_plan(plan, blocks)
        cells = [planned for planned in cells if not planned.optional] or cells
        todo = with_inputs(plan, cells)
        _build_environments(plan, paths, todo)
        if force:
            for planned in cells:
                paths.forget_record(*planned.key)
        specs = ({key: value for key, value in planned.spec.items() if key != "optional"} for planned in todo)
        jobs = [load_job(spec, paths) for spec in specs]
        start_progress(paths, dict(Counter(p.cell.stage for p in todo)))
        keys = {planned.key for planned in todo}
        touched = [(block.rule, block.name) for block in blocks if not keys.isdisjoint(p.key for p in block.cells)]
        for block in touched:
            # Its next run looks at every record, and then at what was made from them.
            paths.stamp(*block).unlink(missing_ok=True)
        with leased(paths, touched):
            run_jobs(jobs, paths, attempt=1)
        # One that was made between two cells, or for a run before, does not have all of these.
        make_report_of(paths)
        return dict(Counter(read_record(paths.record(*planned.key)).status.value for planned in cells))
    finally:
        claim.give_back()
