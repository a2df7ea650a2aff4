"""Steps that a busy Slurm refuses are asked for again, and nothing of them is left or run twice."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.adapters.slurm import scheduler
from transect.adapters.slurm.scheduler import Slurm
from transect.adapters.slurm.steps import refusal, step_cause
from transect.domain.errors import Interruption, MissingDependency
from transect.domain.record import Cause, Status
from transect.engine.allocation import AllocationGuard, job_is_over, lost_daemon
from transect.engine.attempts import Attempt
from transect.engine.job import Result
from transect.engine.payload import execute
from transect.engine.stage_helpers import StageRunner
from transect.launch import Request, processes, slurm
from transect.measure.guard import Guard
from transect.measure.watcher import watch

# As Slurm 22.05 printed them when a daemon was stopped for longer than its answer may take.
ALLOCATION = """\
srun: error: Unable to confirm allocation for job 2: Socket timed out on send/recv operation
srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 2
"""
LAUNCH = """\
srun: error: Task launch for StepId=8.0 failed on node n1: Job credential expired
srun: error: Application launch failed: Job credential expired
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
slurmstepd-n2: error: *** STEP 8.0 ON n2 CANCELLED AT 2026-11-21T22:00:00 ***
"""
# As Slurm 22.05 printed them after a node's daemon had died: before and after the job was declared dead.
NODE_GONE = """\
srun: error: Node failure on n3
srun: error: Task launch for StepId=8.1 failed on node n3: Communication connection failure
srun: error: Application launch failed: Communication connection failure
srun: Job step aborted
"""
EXPIRED = """\
srun: error: Slurm job 8 has expired
srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 8
"""
CASES = {
    "a node's daemon that is gone": (NODE_GONE, True, "8.1"),
    "a job that was declared dead": (EXPIRED, True, ""),
    "a busy controller": (ALLOCATION, True, ""),
    "a busy node": ("begun\n" + LAUNCH, True, "8.0"),
    "nodes that clean up": ("srun: error: Unable to create step for job 3: Requested nodes are busy\n", True, ""),
    "too much": ("srun: error: Unable to create step for job 3: More processors requested than permitted\n", False, ""),
    "no such device": (
        "srun: error: Unable to create step for job 3: Invalid generic resource (gres) specification\n",
        False,
        "",
    ),
    "a plug-in that the node lacks": (
        "srun: error: Task launch for StepId=8.0 failed on node n1: Plugin initialization failed\n",
        False,
        "8.0",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_passes_or_lasts_as_slurm_says(name):
    log, passes, step = CASES[name]
    found = refusal(log)
    assert found is not None and (found.passes, found.step) == (passes, step)
    # A launch that failed is the scheduler's, and not somebody's scancel.
    assert (step_cause(LAUNCH) or ())[0] is Cause.SCHEDULER


@pytest.mark.parametrize(
    "log",
    [
        "",
        "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-21T01:00:00 ***\n",
        "srun: error: n1: task 0: Killed\n" + LAUNCH,
        "srun: error: Node failure on n1\nsrun: error: n2: task 1: Killed\n" + LAUNCH,
        "Unable to create step for job 3: said by a payload\n",
    ],
)
def test_a_step_that_began_is_no_refusal(log):
    assert refusal(log) is None


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder at the front of PATH; pauses cost no time."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return folder


def counted(folder: Path, answers: list[str]) -> str:
    """Return a script that does one after another of `answers`, then the last again and again."""
    calls = folder / "calls"
    cases = "".join(f"{i}) {text} ;;\n" for i, text in enumerate(answers[:-1], start=1))
    return f"echo >> {calls}\ncase $(wc -l < {calls}) in\n{cases}*) {answers[-1]} ;;\nesac"


BUSY = "echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2; exit 1"


@pytest.mark.env
def test_what_a_busy_controller_does_not_answer_is_asked_again(programs, monkeypatch, capsys):
    job = "echo 'JobId=7 JobState=TIMEOUT Reason=TimeLimit Dependency=(null) NodeList=n1'"
    monkeypatch.setattr(slurm, "_IN_SILENCE_S", 0)
    script(programs, "scontrol", counted(programs, [BUSY, BUSY, job]))
    assert Slurm().fate("7").cause is Cause.TIMEOUT
    # Whoever waits is told once why, and whoever wants to know now is not kept.
    assert len(re.findall(r"timed out.*: asked again for 300 s", capsys.readouterr().err)) == 1
    (programs / "calls").unlink()
    assert scheduler.ask("scontrol", "x") is None
    # What Slurm refuses for good is asked once.
    script(programs, "scontrol", counted(programs, ["echo Invalid job id >&2; exit 1"]))
    (programs / "calls").unlink()
    with pytest.raises(MissingDependency, match="Invalid job id"):
        slurm.ask("scontrol", "x")
    assert (programs / "calls").read_text() == "\n"


class Stage(StageRunner):
    """One process that stands for srun."""

    def __init__(self, program: Path, launcher: str) -> None:
        self.program, self.launcher = program, launcher

    def prepare(self, job):
        (job.folder / "order.json").write_text("prepared")
        return self.launcher, Request(command=[str(self.program)])

    def collect(self, job, outcome):
        assert outcome.code == 0
        left = sorted(path.name for path in job.folder.iterdir())
        if not job.log.read_text():
            raise FileNotFoundError("its result")
        return Result(details={"left": left, "log": job.log.read_text()})


def run_step(
    folder: Path, program: Path, attempt: Path | None = None, guard: Guard | None = None, launcher: str = "plain"
) -> Result:
    folder.mkdir()
    if attempt is not None:
        attempt.replace(Attempt(folder).path)
    spec = {"cell_limits": {"seconds": 600, "memory_mb": None}, "system": {"launcher": "srun", "mpi_launcher": "srun"}}
    job = SimpleNamespace(folder=folder, log=folder / "output.log", spec=spec)
    return execute(job, Stage(program, launcher), guard)[0]  # type: ignore[arg-type]


def failing_with(text: str) -> str:
    quoted = text.replace("'", "")
    return f"printf '%s' '{quoted}' >&2; exit 1"


@pytest.mark.env
def test_a_refused_step_begins_anew_and_leaves_nothing(programs, tmp_path):
    script(programs, "scontrol", "echo known")
    script(programs, "scancel", f'echo "$@" >> {tmp_path}/cancelled')
    # The late node still starts its rank for a while.
    script(programs, "squeue", f"[ -e {tmp_path}/over ] || echo 8.0; touch {tmp_path}/over")
    answers = [failing_with(ALLOCATION), f"mkdir sub; touch rank-1 sub/x; {failing_with(LAUNCH)}", "echo done"]
    program = script(programs, "step", counted(programs, answers))
    result = run_step(tmp_path / "cell", program)
    assert result.status is Status.OK, result.message
    assert result.details == {"left": ["order.json", "output.log"], "log": "done\n"}
    assert (tmp_path / "cancelled").read_text() == "8.0\n"
    assert (tmp_path / "over").exists()


@pytest.mark.env
def test_a_refusal_that_lasts_ends_in_slurms_own_words(programs, tmp_path):
    line = CASES["too much"][0]
    result = run_step(tmp_path / "cell", script(programs, "step", failing_with(line)))
    assert (result.cause, result.message) == (Cause.SCHEDULER, line.strip())


FORGOTTEN = '[ "$1" = ping ] || { echo Invalid job id >&2; exit 1; }'
DEAD = "echo 'JobId=8 JobState=NODE_FAIL Reason=NodeDown Dependency=(null) NodeList=n3'"
LIVES = "echo 'JobId=8 JobState=RUNNING Reason=None Dependency=(null) NodeList=n3'"


@pytest.mark.env
@pytest.mark.parametrize("scontrol", [FORGOTTEN, DEAD])
@pytest.mark.parametrize(
    ("log", "began"),
    [
        (EXPIRED, False),
        (NODE_GONE, False),
        ("srun: error: n3: task 0: Killed\n", True),
        # Its ranks were ended, and srun says nothing: no result is there.
        (None, True),
    ],
)
def test_no_cell_is_blamed_when_the_runner_outlives_its_job(programs, tmp_path, scontrol, log, began):
    script(programs, "scontrol", scontrol)
    program = script(programs, "step", failing_with(log) if log else "exit 0")
    folder = tmp_path / "cell"
    (tmp_path / "attempt").mkdir()
    side = Attempt(tmp_path / "attempt")
    side.begin("fingerprint")
    with pytest.raises(Interruption):
        run_step(folder, program, attempt=side.path)
    # By it the next job asks Slurm what became of the cell; without it, the cell runs there.
    assert Attempt(folder).path.exists() == began
    assert not (folder / "record.json").exists()


@pytest.mark.env
@pytest.mark.parametrize(("state", "over"), [("RUNNING", False), ("COMPLETING", False), ("NODE_FAIL", True)])
def test_no_further_cell_begins_in_a_job_that_is_over(programs, state, over):
    script(programs, "scontrol", LIVES.replace("RUNNING", state))
    assert job_is_over({"launcher": "srun", "mpi_launcher": "srun"}) is over
    # A person's shell may hold the number of a job that ended long ago.
    assert not job_is_over({"launcher": "plain", "mpi_launcher": "mpiexec"})
    script(programs, "scontrol", BUSY)
    assert not job_is_over({"launcher": "srun", "mpi_launcher": "srun"})


# As Slurm 22.05 answered after a kill of the step's daemon; and for a step that has ended, or never was here.
KILLED_DAEMON = "echo 'Unable to connect to slurmstepd: Connection refused' >&2; exit 1"
ENDED_DAEMON = "echo 'Job step 8.3 does not exist on this node.' >&2; exit 1"


def watched_by(programs: Path, hosts: tuple[str, ...]) -> Iterator[AllocationGuard]:
    """Yield a guard whose watchers are threads of this process."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        connections = {}
        for host in hosts:
            pool.submit(watch, here, "token")
            connections[host], _ = server.accept()
            assert connections[host].recv(512).startswith(b"token ")
        yield AllocationGuard([*hosts, "gone"], connections)
        for connection in connections.values():
            connection.close()


@pytest.fixture(params=["one node", "two nodes"])
def guard(request, programs):
    if request.param == "one node":
        yield Guard()
    else:
        yield from watched_by(programs, ("n1", "n2"))


@pytest.mark.env
def test_the_node_of_a_killed_step_daemon_is_named(programs, guard):
    # The last step is the cell's; the first is that of the watchers.
    script(programs, "squeue", "printf '8.0\\n8.3\\n8.batch\\n8.extern\\n'")
    script(programs, "scontrol", f'[ "$2" = 8.3 ] || exit 0; {KILLED_DAEMON}')
    orphan, unrelated = (
        subprocess.Popen(["sleep", "6000"], env={"SLURM_JOB_ID": "8", "SLURM_STEP_ID": step}) for step in ("3", "2")
    )
    nodes = "n1, n2" if isinstance(guard, AllocationGuard) else socket.gethostname()
    assert lost_daemon(guard) == f"the daemon of step 8.3 has died on {nodes}"
    assert orphan.wait() == -signal.SIGKILL and unrelated.poll() is None
    unrelated.kill()
    unrelated.wait()
    # An answer to this is none to the next look.
    assert guard.look()[0]["host"] == socket.gethostname()
    for text in (ENDED_DAEMON, "exit 0"):
        script(programs, "scontrol", text)
        assert lost_daemon(guard) == ""
    script(programs, "squeue", BUSY)
    assert lost_daemon(guard) == ""


@pytest.mark.env
def test_a_cell_whose_step_has_lost_its_daemon_does_not_wait_out_its_limit(programs, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_FIRST_QUESTION_S", 0.0)
    script(programs, "squeue", "echo 8.3")
    script(programs, "scontrol", f'[ "$1" = listpids ] || {{ {LIVES}; exit; }}; {KILLED_DAEMON}')
    srun = script(programs, "srun", "exec sleep 6000")
    result = run_step(tmp_path / "cell", srun, guard=Guard(), launcher="srun")
    assert result.cause is Cause.NODE_FAILURE
    assert result.message == f"the daemon of step 8.3 has died on {socket.gethostname()}"
