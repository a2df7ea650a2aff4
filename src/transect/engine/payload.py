"""Running a cell's payload and naming why it ended badly."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
import traceback
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from transect.domain.errors import FAULTS, BadInput, Interruption, MissingDependency, TransectError, Unsupported
from transect.domain.files import FULL, digest, free_bytes
from transect.domain.record import Cause, MetricValue, Status
from transect.domain.terminal import say
from transect.engine.allocation import job_is_over, lost_daemon
from transect.engine.attempts import Attempt
from transect.engine.job import Job, Result, check_environment
from transect.engine.scheduler import Refusal, scheduler
from transect.engine.seat import Seat
from transect.engine.stage_helpers import StageRunner
from transect.launch import LAUNCHERS
from transect.launch.launchers.mpiexec import unreached
from transect.launch.processes import Outcome, run
from transect.launch.shim import too_few_gpus
from transect.launch.wrapping import image_fault, modules_fault
from transect.measure.guard import Guard
from transect.measure.speed_variables import speed_variables
from transect.measure.turns import TURNS_VARIABLE
from transect.planning.expand import reason_to_skip

# How long a step may be refused for reasons that pass. The job's own limit usually ends it first.
_STEP_WAIT_S = 1800
# Less than this is a full file system: a record does not fit.
_NO_ROOM = 1 << 20
# The label of the metric `energy`: no counter of the training loop alone.
COUNTER = "slurm step"


class DiskFull(TransectError):
    """The results folder is full: a fault of the infrastructure, not of a cell."""

    exit_code = 75


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def remove(paths: Iterable[Path]) -> None:
    """Remove files and folders of a cell's, and no more than the link of what is linked; what cannot be stays.

    NFS keeps a file that a straggler has open, such as its log, under another name, which is busy until that one ends.
    """
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()


def refuse(job: Job) -> Result | None:
    """Return why the payload is not even started, or None."""
    reason = reason_to_skip(job.cell)
    if reason is not None:
        return Result.skipped(Cause.UNSUPPORTED, reason)
    for facts in (job.environment, *job.others.values()):
        if facts.get("skips"):
            return Result.skipped(Cause.MISSING_DEPENDENCY, f"environment '{facts['name']}': {facts['message']}")
    try:
        check_environment(job)
    except MissingDependency as error:
        return Result.failed(Cause.MISSING_DEPENDENCY, str(error))
    return None


def _lacks(job: Job, code: int, log: str) -> str | None:
    for facts in (job.environment, *job.others.values()):
        image = job.image_of(facts)
        if image is not None and (fault := image_fault(image[1], image[0], log)):
            return fault
    return modules_fault(code, log)


def _judge(job: Job, stage: StageRunner, outcome: Outcome) -> Result:
    limits: dict[str, Any] = job.spec["cell_limits"]
    if outcome.end == "timeout":
        return Result.failed(Cause.TIMEOUT, f"ended after its limit of {limits['seconds']:g} s")
    if outcome.end == "out-of-memory":
        return Result.failed(Cause.OUT_OF_MEMORY, f"its ranks held more than the limit of {limits['memory_mb']} MB")
    if outcome.end == "lost":
        return Result.failed(Cause.NODE_FAILURE, outcome.why)
    if outcome.code:
        log = _text(job.log)
        if message := unreached(log):
            return Result.failed(Cause.SCHEDULER, message)
        reported = scheduler().step_cause(log)
        if reported is not None and reported[0] is not None:
            return Result.failed(reported[0], reported[1])
        # Also where srun tells that a rank ended by itself: it may never have become the payload.
        if fault := _lacks(job, outcome.code, log):
            return Result.failed(Cause.MISSING_DEPENDENCY, fault)
        if reason := too_few_gpus(log):
            return Result.skipped(Cause.UNSUPPORTED, reason)
        if reported is not None:
            return stage.collect(job, outcome)
    # A launcher such as mpiexec reports a rank's signal as 128 + number.
    number = outcome.code if outcome.end == "signalled" else outcome.code - 128
    killed = number in (signal.SIGKILL, signal.SIGTERM)
    if not killed and outcome.end != "signalled":
        return stage.collect(job, outcome)
    who, name = stage.who(job, outcome) or "a process", signal.Signals(number).name
    if killed:
        return Result.failed(Cause.KILLED, f"{who} was ended by {name}, not by transect")
    return Result.failed(Cause.CRASH, f"{who} died by {name}")


def counts_energy(job: Job) -> bool:
    """Tell whether the system's file says that the scheduler counts the energy of job steps, and this is its job."""
    about = job.spec.get("about") or {}
    return bool(about.get("step_energy")) and scheduler().job() is not None


def step_name(job: Job) -> str:
    """Return how the cell's job step is called, to find it among those of its job."""
    return f"transect-{digest([job.cell.stage, job.cell.id])[:12]}"


def note_energy(job: Job, outcome: Outcome, result: Result) -> None:
    """Add the energy of the cell's job step to its result, or to its details why that is not known."""
    if not counts_energy(job) or result.status is not Status.OK:
        return
    energy = scheduler().step_energy(step_name(job))
    if isinstance(energy, str):
        result.details["step_energy"] = {"missing": energy}
        return
    result.details["step_energy"] = {"seconds": outcome.seconds}
    result.metrics.append(MetricValue.of("energy", energy, label=COUNTER))


def _begins_anew(job: Job, refused: Refusal, prepared: set[Path]) -> bool:
    """Tell whether the step may be asked for again; remove what a step left that began on some nodes.

    No payload runs twice: its ranks have ended, and were never all there.
    """
    if not refused.passes or (refused.step and not scheduler().end_step(refused.step, _STEP_WAIT_S)):
        return False
    say(f"[transect] asking again: {refused.line}")
    remove(set(job.folder.iterdir()) - prepared)
    return True


def _run(
    job: Job, stage: StageRunner, guard: Guard | None, seat: Seat | None
) -> tuple[Result, Outcome | None, dict[str, str]]:
    # Said anew when the ranks start; Open MPI hands on to other hosts what is there to be named. Threads of a heat do not
    # meet here: who starts has the turn.
    os.environ["TRANSECT_STARTED_AT"] = repr(time.time())
    if seat is not None:
        os.environ[TURNS_VARIABLE] = seat.address
    else:
        os.environ.pop(TURNS_VARIABLE, None)
    try:
        name, request = stage.prepare(job)
        counted = stage.energy and counts_energy(job)
        if counted:
            request = replace(request, name=step_name(job))
        launcher = LAUNCHERS.get(name)
        if (reason := launcher.supports(request)) is not None:
            raise Unsupported(reason)
        commands = launcher.processes(request)
    except Unsupported as error:
        return Result.skipped(Cause.UNSUPPORTED, str(error)), None, {}
    except MissingDependency as error:
        return Result.skipped(Cause.MISSING_DEPENDENCY, str(error)), None, {}
    limits: dict[str, Any] = job.spec["cell_limits"]
    memory, begin, prepared = limits["memory_mb"], time.monotonic(), set(job.folder.iterdir())
    while True:
        os.environ["TRANSECT_STARTED_AT"] = repr(time.time())
        outcome = run(
            commands,
            log=job.log,
            cwd=job.folder,
            seconds=limits["seconds"],
            memory_bytes=memory * 2**20 if memory else None,
            lost=partial(lost_daemon, guard) if guard and name == "srun" else str,
            pauses=seat,
        )
        refused = scheduler().refusal(_text(job.log)) if outcome.code else None
        if refused is None:
            break
        if job_is_over(job.spec.get("system") or {}):
            Attempt(job.folder).end()  # it never began: the next job runs it
            raise Interruption(1)
        if time.monotonic() - begin > _STEP_WAIT_S or not _begins_anew(job, refused, prepared):
            return Result.failed(Cause.SCHEDULER, refused.line), outcome, {}
        time.sleep(1)
    variables = speed_variables({**os.environ, **commands[0][1]})
    result = _judge(job if seat is None else replace(job, turns=seat.taken()), stage, outcome)
    if seat is not None:
        # A counter of the node has counted the others' turns too.
        result.details |= {"step_energy": {"missing": "it took turns with other cells"}} if counted else {}
    elif counted:
        note_energy(job, outcome, result)
    return result, outcome, variables


def execute(
    job: Job, stage: StageRunner, guard: Guard | None = None, seat: Seat | None = None
) -> tuple[Result, Outcome | None, dict[str, str]]:
    """Run the payload; return its result, how it ended, and the variables that change speed.

    With a `seat` it takes turns with others. `guard` sees whether the daemon of a job step dies, which Slurm does not.
    Raises DiskFull when there is no room for results, and Interruption when the job is over for Slurm: nobody
    is to blame then. Any other fault becomes a result.
    """
    try:
        ended = _run(job, stage, guard, seat)
    except BadInput as error:
        ended = Result.failed(Cause.BAD_INPUT, str(error)), None, {}
    except FAULTS as error:  # whatever a payload left behind or a plug-in does
        # What a payload left behind may be anything; a full disk is not the cell's fault.
        if isinstance(error, OSError) and error.errno in FULL:
            raise DiskFull(f"{job.folder}: {error}") from None
        say(*traceback.format_exc().splitlines())
        ended = Result.failed(Cause.CRASH, f"{type(error).__name__}: {error}"), None, {}
    if ended[0].status is Status.FAILED:
        if free_bytes(job.folder) < _NO_ROOM:
            raise DiskFull(f"{job.folder}: no room for results on this file system")
        if job_is_over(job.spec.get("system") or {}):
            raise Interruption(1)  # the next job asks Slurm what became of it
    return ended
