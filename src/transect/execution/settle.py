"""Records for cells whose jobs failed to the last attempt, and a report in spite of them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime

from transect.domain.errors import TransectError
from transect.domain.record import Cause, Record, Status, write_record
from transect.execution.attempts import Attempt
from transect.execution.job import Job, Result, load_job
from transect.execution.payload import FULL
from transect.execution.run_cell import fingerprint_of, valid_record
from transect.execution.scheduler import fate
from transect.execution.stages import STAGES
from transect.execution.submissions import SUBMISSIONS
from transect.measure.provenance import collect
from transect.planning.blocks import Block
from transect.planning.plan import StudyPlan

__all__ = ["settle"]


def _result(job: Job, block: Block) -> Result:
    """Say why a cell has no record of its own."""
    earlier = Attempt(job.folder).of_session()
    if earlier is not None and earlier["slurm_job"]:
        told = fate(earlier["slurm_job"])
        return Result.failed(told.cause, told.message)
    message = SUBMISSIONS.failed.get(block.rule)
    if message is not None:
        return Result.failed(Cause.SCHEDULER, f"its job {block.rule} did not run: {message}")
    others = ", ".join(sorted(SUBMISSIONS.failed)) or "another"
    return Result.skipped(Cause.MISSING_DEPENDENCY, f"it needs what job {others} did not make")


def _holds(job: Job) -> bool:
    try:
        fingerprint = fingerprint_of(job, STAGES.get(job.cell.stage))
    except (OSError, TransectError):
        return False
    return valid_record(job, fingerprint) is not None


def _write(job: Job, result: Result) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        fingerprint = fingerprint_of(job, STAGES.get(job.cell.stage))
    except (OSError, TransectError):
        fingerprint = str(job.spec["fingerprint"])
    record = Record(
        study=job.spec["study"],
        stage=job.cell.stage,
        cell=job.cell,
        cell_id=job.cell.id,
        status=result.status,
        cause=result.cause,
        message=result.message,
        fingerprint=fingerprint,
        started=now,
        ended=now,
        parameters=job.spec.get("parameters", {}),
        provenance=collect(),
    )
    write_record(job.folder / "record.json", record)
    Attempt(job.folder).end()


def settle(plan: StudyPlan, blocks: list[Block]) -> None:
    """Give every cell without a record one that says why, and make the report.

    A full file system is told and left: the next call goes on where this one stopped.
    """
    results = plan.paths.results.resolve()
    settled = 0
    try:
        for block in blocks:
            for planned in block.cells:
                job = load_job(plan.paths.spec(planned.cell.stage, planned.id), results)
                if _holds(job):
                    continue
                result = _result(job, block)
                assert result.status is not Status.OK
                _write(job, result)
                settled += 1
    except OSError as error:
        if error.errno not in FULL:
            raise
        text = f"{results}: {error}: free some space and call snakemake again"
        print(f"transect: {text}", file=sys.stderr)
        return
    if settled:
        told = f"{settled} cells have no result of their own; `transect retry` runs them again"
        print(f"[transect] {told}", file=sys.stderr)
    command = [
        sys.executable, "-m", "transect.execution.make_report",
        "--study", str(plan.file), "--results", str(plan.paths.results),
    ]  # fmt: skip
    subprocess.run(command, check=False, env=os.environ)
