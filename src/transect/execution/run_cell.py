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
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from transect.domain.errors import BadInput, MissingDependency, TransectError
from transect.domain.files import digest
from transect.domain.record import Cause, Record, Status, read_record, write_record
from transect.execution.attempts import CELL_VARIABLE, Attempt, clear_leftovers
from transect.execution.job import Job, Result, check_environment, load_job
from transect.execution.progress import note_progress
from transect.execution.stages import STAGES, Stage
from transect.launch import LAUNCHERS
from transect.launch.processes import Outcome, run
from transect.measure.guard import snapshot
from transect.measure.provenance import collect, speed_variables
from transect.planning.expand import reason_to_skip

__all__ = ["main", "run_job"]

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


def _kept(job: Job, fingerprint: str) -> bool:
    """Keep a record that still holds: same spec, code, environment and inputs."""
    path = job.folder / "record.json"
    try:
        record = read_record(path)
    except BadInput:
        return False
    # These two may have been mended outside of what the fingerprint covers.
    mended = (Cause.MISSING_DEPENDENCY, Cause.UNSUPPORTED)
    if record.fingerprint != fingerprint or record.cause in mended:
        return False
    # Snakemake compares times: a record that was found valid counts as new.
    os.utime(path)
    return True


def _refuse(job: Job) -> Result | None:
    """Return why the payload is not even started, or None."""
    reason = reason_to_skip(job.cell)
    if reason is not None:
        return Result.skipped(Cause.UNSUPPORTED, reason)
    try:
        check_environment(job)
    except MissingDependency as error:
        return Result.failed(Cause.MISSING_DEPENDENCY, str(error))
    return None


def _execute(job: Job, stage: Stage) -> tuple[Result, Outcome | None, dict[str, str]]:
    try:
        name, request = stage.prepare(job)
        launcher = LAUNCHERS.get(name)
        reason = launcher.supports(request)
        if reason is not None:
            return Result.skipped(Cause.UNSUPPORTED, reason), None, {}
        commands = launcher.processes(request)
    except MissingDependency as error:
        return Result.skipped(Cause.MISSING_DEPENDENCY, str(error)), None, {}
    except BadInput as error:
        return Result.failed(Cause.BAD_INPUT, str(error)), None, {}
    limits: dict[str, Any] = job.spec["cell_limits"]
    memory = limits["memory_mb"]
    os.environ["TRANSECT_STARTED_AT"] = repr(time.time())
    outcome = run(
        commands,
        log=job.log,
        cwd=job.folder,
        seconds=limits["seconds"],
        memory_bytes=memory * 2**20 if memory else None,
    )
    variables = speed_variables({**os.environ, **commands[0][1]})
    if outcome.end == "timeout":
        text = f"ended after its limit of {limits['seconds']:g} s"
        return Result.failed(Cause.TIMEOUT, text), outcome, variables
    if outcome.end == "out-of-memory":
        text = f"its ranks held more than the limit of {memory} MB"
        return Result.failed(Cause.OUT_OF_MEMORY, text), outcome, variables
    # A launcher such as mpiexec reports a rank's signal as 128 + number.
    number = outcome.code if outcome.end == "signalled" else outcome.code - 128
    if number in (signal.SIGKILL, signal.SIGTERM):
        text = f"a process was ended by {signal.Signals(number).name}, not by transect"
        return Result.failed(Cause.KILLED, text), outcome, variables
    if outcome.end == "signalled":
        text = f"a process died by {signal.Signals(number).name}"
        return Result.failed(Cause.CRASH, text), outcome, variables
    return stage.collect(job, outcome), outcome, variables


def _guarded(job: Job, stage: Stage) -> tuple[Result, Outcome | None, dict[str, str]]:
    try:
        return _execute(job, stage)
    except (TransectError, ValueError, KeyError, OSError) as error:
        # What a payload left behind may be anything; a full disk is not the cell's fault.
        if isinstance(error, OSError) and error.errno in (28, 122):
            raise
        traceback.print_exc()
        return Result.failed(Cause.CRASH, f"{type(error).__name__}: {error}"), None, {}


def run_job(job: Job, attempt: int) -> Record:
    """Run the cell, or keep its valid record; write and return the record."""
    stage = STAGES.get(job.cell.stage)
    fingerprint = digest([job.spec["fingerprint"], *stage.inputs(job)])[:16]
    if _kept(job, fingerprint):
        return read_record(job.folder / "record.json")
    side = Attempt(job.folder)
    earlier = side.earlier(fingerprint) if attempt > 1 else None
    if side.path.exists():
        clear_leftovers(job.folder)
    tail = _tail(job.log) if earlier else ""
    # Removed before the payload starts: an interrupted cell must not look finished.
    shutil.rmtree(job.folder, ignore_errors=True)
    job.folder.mkdir(parents=True, exist_ok=True)
    started, before, after = _now(), {}, {}
    outcome, variables = None, {}
    os.environ[CELL_VARIABLE] = str(job.folder)
    refusal = _refuse(job)
    if refusal is not None:
        result = refusal
    elif earlier is not None:
        result = Result.failed(
            Cause.KILLED, f"the runner of its first attempt (pid {earlier['pid']}) was killed"
        )
    else:
        before = snapshot()
        side.begin(fingerprint)
        result, outcome, variables = _guarded(job, stage)
        after = snapshot()
        tail = _tail(job.log)
    if outcome is not None:
        result.details |= {"payload_s": outcome.seconds, "disturbed": bool(after.get("foreign"))}
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
            "libraries": result.libraries,
            "mpi": result.libraries.get("mpi"),
            "variables": variables,
            "load_before": before.get("load"),
            "load_after": after.get("load"),
            "foreign_before": before.get("foreign"),
            "foreign_after": after.get("foreign"),
        },
    )
    write_record(job.folder / "record.json", record)
    side.end()
    return record


def _interrupted(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(arguments: list[str] | None = None) -> int:
    """Run one cell; 0 when its record is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--attempt", type=int, default=1)
    given = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _interrupted)
    try:
        job = load_job(given.spec, given.results.resolve())
        record = run_job(job, given.attempt)
    except TransectError as error:
        print(f"transect: {error}", file=sys.stderr)
        return error.exit_code
    note_progress(job.paths, record)
    return 0


if __name__ == "__main__":
    code = main()
    # Leave without a last round of garbage collection: 50 ms of every cell.
    gc.freeze()
    sys.exit(code)
