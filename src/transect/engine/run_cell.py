"""Run one cell to its record: run the payload and write what came of it."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from transect.domain.errors import FAULTS, Interruption, TransectError
from transect.domain.files import FULL, digest, sha256_file
from transect.domain.record import Cause, Record, Status, write_record
from transect.domain.secrets import without_secrets
from transect.domain.terminal import say
from transect.engine.attempts import CELL_VARIABLE, Attempt, clear_leftovers, fate_of
from transect.engine.job import Job, Result
from transect.engine.payload import DiskFull, execute, refuse, remove
from transect.engine.seat import Seat
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import StageRunner
from transect.engine.store import changed_input, checksums_beside, fingerprint_of, used_limits
from transect.measure.guard import Guard, disturbances
from transect.measure.provenance import collect

_TAIL_BYTES = 6000
# Keys of a spec that stand elsewhere in the record, or are for the runner and not for the payload.
_NOT_GIVEN = {
    *("study", "cell", "cell_id", "parameters", "inputs", "environment", "lock", "other_environments", "sources"),
    *("fingerprint", "about", "cell_limits", "taken", "repeat_until", "optional", "pairs"),
    # What is of the machine: `provenance` says what that is, `inputs` what is in a file.
    *("system", "files", "path", "named"),
}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as stream:
        start = max(0, path.stat().st_size - _TAIL_BYTES)
        stream.seek(start)
        # In half a line a password would not be seen as one.
        first = stream.readline() if start else b""
        return (stream.read() or first).decode("utf-8", "replace").replace("\0", "\ufffd")


def _fresh(job: Job, kept: Collection[Path] = ()) -> None:
    # Removed before the payload starts: an interrupted cell must not look finished.
    # A folder stays whole, with what says how far a file that is kept in it goes.
    job.folder.mkdir(parents=True, exist_ok=True)
    remove(set(job.folder.iterdir()) - {*kept, *(folder for path in kept for folder in path.parents)})
    job.spec_file.write_text(json.dumps(job.spec, indent=1) + "\n", encoding="utf-8")


def _kept(job: Job, stage: StageRunner) -> list[Path]:
    return sorted(path for name in stage.keeps for path in job.folder.glob(name))


def _left(job: Job, stage: StageRunner, side: Attempt, fingerprint: str) -> list[Path]:
    """Return the files of an earlier attempt that a payload goes on with, such as a checkpoint.

    Those of an attempt at the very same work alone. Where that one began with the same files, it got
    no further: then there are none.
    """
    before, found = side.kept_by(fingerprint), _kept(job, stage)
    return found if before is not None and _digest_of(found) != before else []


def _digest_of(files: Collection[Path]) -> str:
    return digest([f"{path.name} {sha256_file(path)}" for path in files]) if files else ""


def _measure(
    job: Job, stage: StageRunner, side: Attempt, fingerprint: str, guard: Guard, seat: Seat | None = None
) -> tuple[Result, dict[str, str], dict[str, Any]]:
    limits = job.spec["cell_limits"]
    # A heat is run again as one.
    again = limits["repeats_if_disturbed"] if stage.measures and seat is None else 0
    for repeats in range(again + 1):
        if repeats:
            _fresh(job)
        before = guard.before()
        side.begin(fingerprint, _digest_of([] if repeats else _kept(job, stage)), together=seat is not None)
        result, outcome, variables = execute(job, stage, guard, seat)
        after = guard.after()
        reasons = disturbances(before, after, () if seat is None else seat.quiet[seat.trials :])
        if outcome is None:
            break
        result.details |= {
            "payload_s": outcome.seconds,
            "payload_peak_bytes": outcome.peak_bytes,
            "disturbed": bool(reasons),
            "disturbed_by": reasons,
            "disturbed_repeats": repeats if seat is None else seat.again,
            **({} if seat is None else {"waited_s": seat.waited_s()}),
        }
        too_long = outcome.seconds > limits["repeat_seconds"]
        if not reasons or too_long or result.status is not Status.OK:
            break
    return result, variables, {"guard_before": before, "guard_after": after}


def make_record(
    job: Job,
    result: Result,
    fingerprint: str,
    started: str,
    *,
    inputs: Sequence[str] = (),
    files: dict[str, str] | None = None,
    **more: Any,
) -> Record:
    """Return the record of a result, without secrets."""
    message = result.message.strip() or ("" if result.status is Status.OK else f"{result.cause}, without a reason")
    return Record(
        study=job.spec["study"],
        stage=job.cell.stage,
        cell=job.cell,
        cell_id=job.cell.id,
        status=result.status,
        cause=result.cause,
        message=without_secrets(message),
        fingerprint=fingerprint,
        started=started,
        ended=_now(),
        metrics=result.metrics,
        samples=result.samples,
        details=without_secrets(result.details | {"told": _given(job.spec, inputs)}),
        parameters=without_secrets(job.spec.get("parameters", {})),
        limits=used_limits(job.spec["cell_limits"]),
        # Names and checksums by which others find them: nothing in them is replaced.
        inputs=list(inputs),
        files=files or {},
        **without_secrets(more),
    )


def _given(spec: dict[str, Any], inputs: Sequence[str]) -> dict[str, Any]:
    """Return the payload's input besides its parameters: results of other settings are no repeats of these.

    Files that an option names count by their checksums among the inputs, not by their paths.
    """
    given = {name: value for name, value in spec.items() if name not in _NOT_GIVEN}
    names = {Path(path).name for path in spec.get("named", ())}
    if held := [line for line in inputs if line.rpartition(" ")[0] in names]:
        given["named"] = held
    if isinstance(rule := given.get("rule"), dict):
        given["rule"] = {name: value for name, value in rule.items() if name != "path"}
    return given


def _files(job: Job, result: Result) -> dict[str, str]:
    if result.status is not Status.OK:
        return {}
    return checksums_beside(job.folder, result.details.get("files"))


def _fault(error: BaseException) -> Result:
    say(*traceback.format_exc().splitlines())
    return Result.failed(Cause.CRASH, f"{type(error).__name__}: {error}")


def _run(
    job: Job, stage: StageRunner, side: Attempt, known: tuple[str, list[str]], guard: Guard, seat: Seat | None = None
) -> tuple[Result, dict[str, str], dict[str, Any]]:
    fingerprint, inputs = known
    try:
        refusal = changed_input(job, inputs) or refuse(job)
        if refusal is not None:
            return refusal, {}, {}
        return _measure(job, stage, side, fingerprint, guard, seat)
    except DiskFull:
        raise
    except FAULTS as error:  # the study goes on, whatever a plug-in does; a full disk is not the cell's fault
        if isinstance(error, OSError) and error.errno in FULL:
            raise DiskFull(f"{job.folder}: {error}") from None
        return _fault(error), {}, {}


def _look(job: Job) -> tuple[StageRunner, str, list[str]] | Result:
    try:
        stage = RUNNERS.get(job.cell.stage)
    except TransectError as error:
        return _fault(error)
    try:
        return stage, *fingerprint_of(job, stage)
    except (OSError, ValueError, KeyError, TransectError) as error:
        # What an input left cannot be read: that is not this cell's fault, and it says so.
        text = f"what it takes from other cells cannot be read: {error}"
        return Result.skipped(Cause.MISSING_DEPENDENCY, text)
    except FAULTS as error:  # a plug-in's own
        return _fault(error)


def run_job(job: Job, attempt: int, guard: Guard | None = None, seat: Seat | None = None) -> Record:
    """Run the cell, whether its record holds or not; write and return the record. With a `seat` it takes turns.

    Raises DiskFull when the record cannot be written.
    """
    started, inputs = _now(), list[str]()
    known, fingerprint, side = _look(job), str(job.spec["fingerprint"]), Attempt(job.folder)
    if not isinstance(known, Result):
        stage, fingerprint, inputs = known
    earlier = side.earlier(fingerprint) if attempt > 1 else None
    if side.path.exists():
        clear_leftovers(job.folder)
    left = [] if isinstance(known, Result) else _left(job, stage, side, fingerprint)
    if left:
        earlier = None
    tail = _tail(job.log) if earlier else ""
    variables, seen = dict[str, str](), dict[str, Any]()
    os.environ[CELL_VARIABLE] = str(job.folder)
    try:
        _fresh(job, left)
        if isinstance(known, Result):
            result = known
        elif earlier is not None:
            result = Result.failed(*fate_of(earlier))
        else:
            result, variables, seen = _run(job, stage, side, (fingerprint, inputs), guard or Guard(), seat)
            tail = _tail(job.log)
        record = make_record(
            job,
            result,
            fingerprint,
            started,
            inputs=inputs,
            files=_files(job, result),
            log_tail=tail if result.status is not Status.OK else "",
            provenance=_provenance(job, result, variables, seen),
        )
        write_record(job.folder / "record.json", record)
    except OSError as error:
        raise DiskFull(f"{job.folder}: the record cannot be written: {error}") from None
    finally:
        # Not of an interruption: what was interrupted runs again.
        if not isinstance(sys.exception(), KeyboardInterrupt | Interruption):
            side.end()
    return record


def _provenance(job: Job, result: Result, variables: dict[str, str], seen: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "lock_hash", "wrapper", "wrapper_version", "image")
    environment = {k: job.environment[k] for k in keys if k in job.environment}
    return {
        **collect(),
        "environment": environment,
        "system": job.spec.get("about"),
        "libraries": result.libraries,
        "mpi": result.libraries.get("mpi"),
        "variables": variables,
        **seen,
    }
