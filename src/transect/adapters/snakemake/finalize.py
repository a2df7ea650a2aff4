"""Records for cells whose jobs failed to the last attempt, and a report in spite of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from transect.domain.errors import FAULTS, TransectError
from transect.domain.files import FULL
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause, Status, write_record
from transect.domain.terminal import complain, say
from transect.engine.attempts import Attempt, fate_of
from transect.engine.job import Job, Result, load_job
from transect.engine.locks import runs_elsewhere
from transect.engine.progress import make_report_of
from transect.engine.run_cell import make_record
from transect.engine.stage import RUNNERS
from transect.engine.store import Holds, fingerprint_of, state
from transect.engine.submissions import SUBMISSIONS
from transect.measure.provenance import collect
from transect.planning.blocks import Block
from transect.planning.plan import StudyPlan


def _result(job: Job, block: Block, lacking: dict[tuple[str, str], str]) -> Result:
    """Say why a cell has no record of its own. `lacking`: the block of each cell without one."""
    earlier = Attempt(job.folder).of_session()
    if earlier is not None:
        return Result.failed(*fate_of(earlier))
    message = SUBMISSIONS.failed.get(block.id)
    if message is not None:
        return Result.failed(Cause.SCHEDULER, f"its job {block.id} did not run: {message}")
    for stage, cell_id in job.spec["inputs"].values():
        other_block = lacking.get((stage, cell_id), block.id)
        if other_block != block.id:
            return Result.skipped(Cause.MISSING_DEPENDENCY, f"it needs what job {other_block} did not make")
    return Result.failed(Cause.CRASH, f"the runner of its job {block.id} ended before its turn")


def _settle_one(job: Job, block: Block, lacking: dict[tuple[str, str], str]) -> bool:
    if isinstance(state(job.paths, job.spec, job), Holds):
        return False
    try:
        fingerprint, inputs = fingerprint_of(job, RUNNERS.get(job.cell.stage))
    except FAULTS:  # as when the cell's turn comes
        fingerprint, inputs = str(job.spec["fingerprint"]), []
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    result = _result(job, block, lacking)
    assert result.status is not Status.OK
    record = make_record(job, result, fingerprint, started, inputs=inputs, provenance=collect())
    write_record(job.folder / "record.json", record)
    Attempt(job.folder).end()
    return True


def settle(plan: StudyPlan, blocks: Iterable[Block]) -> None:
    """Give every cell without a record one that says why, and make the report.

    A full file system is reported and left: the next call goes on where this one stopped.
    """
    paths = StudyPaths(results=plan.paths.results.resolve(), study=plan.study.name)
    open_ = [block for block in blocks if not paths.stamp(block.rule, block.name).exists()]
    lacking = {planned.key: block.id for block in open_ for planned in block.cells}
    settled = 0
    try:
        for block in open_:
            if holder := runs_elsewhere(paths, block.rule, block.name):
                complain(f"{block.id}: its cells are run by {holder}: left to it")
                continue
            for planned in block.cells:
                if planned.optional and not paths.record(*planned.key).exists():
                    continue  # nobody needs it yet
                try:
                    job = load_job(planned.spec, paths)
                except TransectError as error:
                    complain(f"{planned.id}: {error}")
                    continue
                settled += _settle_one(job, block, lacking)
    except OSError as error:
        if error.errno not in FULL:
            raise
        complain(f"{paths.results}: {error}: free some space and call snakemake again")
        return
    if settled:
        say(f"[transect] {settled} cells have no result of their own; after `transect reset` the next run makes them")
    make_report_of(paths)
