"""Run one cell to its record: `python -m transect.execution.run_cell --spec … --results …`.

Exit code 0 means that the record is there, whatever it says. Anything else is a fault of the
infrastructure, or an interruption, and there is no record.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from transect.domain.errors import BadInput, TransectError
from transect.domain.files import digest
from transect.domain.record import Cause, Record, Status, read_record, write_record
from transect.execution.attempts import CELL_VARIABLE, Attempt, clear_leftovers
from transect.execution.job import Job, Result, load_job
from transect.execution.payload import FULL, DiskFull, execute, refuse
from transect.execution.progress import note_progress
from transect.execution.scheduler import fate
from transect.execution.stages import STAGES, Stage
from transect.measure.guard import Guard, disturbances
from transect.measure.provenance import collect

__all__ = ["end_on_signals", "fingerprint_of", "main", "run_job", "valid_record"]

_TAIL_BYTES = 6000


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return stream.read().decode("utf-8", "replace").replace("\0", "\ufffd")
    except OSError:
        return ""


def fingerprint_of(job: Job, stage: Stage) -> str:
    """Return the plan part of the fingerprint with the checksums of the inputs."""
    return digest([job.spec["fingerprint"], *stage.inputs(job)])[:16]


def valid_record(job: Job, fingerprint: str) -> Record | None:
    """Return the record when it still holds: same spec, code, environment and inputs."""
    path = job.folder / "record.json"
    try:
        record = read_record(path)
    except BadInput:
        return None
    # These two may have been mended outside of what the fingerprint covers.
    mended = (Cause.MISSING_DEPENDENCY, Cause.UNSUPPORTED)
    if record.fingerprint != fingerprint or record.cause in mended:
        return None
    # Snakemake compares times: a record that was found valid counts as new.
    os.utime(path)
    return record


def _fate(earlier: dict[str, Any]) -> Result:
    """Return the result of a cell whose first runner ended without a record."""
    if earlier["slurm_job"]:
        told = fate(earlier["slurm_job"])
        return Result.failed(told.cause, told.message)
    text = f"the runner of its first attempt (pid {earlier['pid']}) was killed"
    return Result.failed(Cause.KILLED, text)


def _fresh(folder: Path) -> None:
    # Removed before the payload starts: an interrupted cell must not look finished.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


def _measure(
    job: Job, stage: Stage, side: Attempt, fingerprint: str, guard: Guard
) -> tuple[Result, dict[str, str], dict[str, Any]]:
    """Run the payload, again when others disturbed it and the budget allows."""
    limits = job.spec["cell_limits"]
    again = limits["repeats_if_disturbed"] if stage.measures else 0
    for repeats in range(again + 1):
        if repeats:
            _fresh(job.folder)
        before = guard.look()
        side.begin(fingerprint)
        result, outcome, variables = execute(job, stage)
        after = guard.look()
        reasons = disturbances(before, after)
        if outcome is None:
            break
        result.details |= {
            "payload_s": outcome.seconds,
            "disturbed": bool(reasons),
            "disturbed_by": reasons,
            "disturbed_repeats": repeats,
        }
        too_long = outcome.seconds > limits["repeat_seconds"]
        if not reasons or too_long or result.status is not Status.OK:
            break
    return result, variables, {"guard_before": before, "guard_after": after}


def run_job(job: Job, attempt: int, guard: Guard | None = None) -> Record:
    """Run the cell, or keep its valid record; write and return the record.

    Raises DiskFull, and OSError when the record cannot be written.
    """
    stage = STAGES.get(job.cell.stage)
    fingerprint = fingerprint_of(job, stage)
    kept = valid_record(job, fingerprint)
    if kept is not None:
        return kept
    side = Attempt(job.folder)
    earlier = side.earlier(fingerprint) if attempt > 1 else None
    if side.path.exists():
        clear_leftovers(job.folder)
    tail = _tail(job.log) if earlier else ""
    _fresh(job.folder)
    started = _now()
    variables: dict[str, str] = {}
    seen: dict[str, Any] = {}
    os.environ[CELL_VARIABLE] = str(job.folder)
    refusal = refuse(job)
    if refusal is not None:
        result = refusal
    elif earlier is not None:
        result = _fate(earlier)
    else:
        try:
            result, variables, seen = _measure(job, stage, side, fingerprint, guard or Guard())
        except DiskFull:
            # Not this cell's fault: the next attempt runs it again.
            side.end()
            raise
        tail = _tail(job.log)
    record = Record(
        study=job.spec["study"],
        stage=job.cell.stage,
        cell=job.cell,
        cell_id=job.cell.id,
        status=result.status,
        cause=result.cause,
        message=result.message,
        log_tail=tail if result.status is not Status.OK else "",
        fingerprint=fingerprint,
        started=started,
        ended=_now(),
        metrics=result.metrics,
        samples=result.samples,
        details=result.details,
        parameters=job.spec.get("parameters", {}),
        provenance={
            **collect(),
            "environment": {
                k: job.environment[k] for k in ("name", "lock_hash") if job.environment
            },
            "system": job.spec.get("about"),
            "libraries": result.libraries,
            "mpi": result.libraries.get("mpi"),
            "variables": variables,
            **seen,
        },
    )
    try:
        write_record(job.folder / "record.json", record)
    except OSError as error:
        side.end()
        raise DiskFull(f"{job.folder}: the record cannot be written: {error}") from None
    side.end()
    return record


def _interrupted(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def end_on_signals() -> None:
    """Turn the signals that ask for an end into SystemExit, so that payloads are ended too."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _interrupted)


def main(arguments: list[str] | None = None) -> int:
    """Run one cell; 0 when its record is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--attempt", type=int, default=1)
    given = parser.parse_args(arguments)
    end_on_signals()
    try:
        job = load_job(given.spec, given.results.resolve())
        record = run_job(job, given.attempt)
    except TransectError as error:
        print(f"transect: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if error.errno not in FULL:
            raise
        print(f"transect: {given.results}: {error}", file=sys.stderr)
        return DiskFull.exit_code
    note_progress(job.paths, record)
    return 0


if __name__ == "__main__":
    code = main()
    # Leave without a last round of garbage collection: 50 ms of every cell.
    gc.freeze()
    sys.exit(code)
