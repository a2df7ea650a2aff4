"""From what Slurm says to the cause in a record; disturbances."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transect.adapters.slurm import scheduler
from transect.adapters.slurm.scheduler import Slurm
from transect.adapters.slurm.steps import step_cause
from transect.domain.record import Cause
from transect.measure.guard import Guard, disturbances, snapshot

STEPS = {
    "memory": (
        "slurmstepd-n1: error: StepId=11.1 exceeded memory limit (895463424 > 629145600), being "
        "killed\nsrun: error: n1: task 0: Killed\n",
        Cause.OUT_OF_MEMORY,
    ),
    "cgroup": (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have "
        "been OOM Killed.\nsrun: error: node7: task 3: Out Of Memory\n",
        Cause.OUT_OF_MEMORY,
    ),
    "a rank": ("epoch 1\nsrun: error: n2: tasks 1,3: Killed\n", Cause.KILLED),
    "node": (
        "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-21T01:00:00 DUE TO NODE "
        "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
        Cause.NODE_FAILURE,
    ),
    "time": (
        "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-21T01:00:00 DUE TO TIME "
        "LIMIT ***\nsrun: error: n1: task 0: Terminated\n",
        Cause.TIMEOUT,
    ),
    "cancelled": ("slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-21T01:00:00 ***\n", Cause.KILLED),
    # One crashed, srun ended the other: the first line counts.
    "crash": ("srun: error: n1: task 0: Exited with exit code 1\nsrun: error: n2: task 1: Killed\n", None),
}


@pytest.mark.parametrize("name", STEPS)
def test_the_first_telling_line_of_srun_names_the_cause(name):
    log, cause = STEPS[name]
    told = step_cause(log)
    assert told is not None and told[0] == cause


def test_a_payload_that_prints_such_words_is_not_believed():
    assert step_cause("n1: task 0: Killed\nexceeded memory limit\nNode failure on n1\n") is None


def fake_scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    script = tmp_path / "scontrol"
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.env
@pytest.mark.parametrize(
    ("state", "reason", "cause", "words"),
    [
        ("TIMEOUT", "TimeLimit", Cause.TIMEOUT, "time limit"),
        ("NODE_FAIL", "NodeDown", Cause.NODE_FAILURE, "(NodeDown)"),
        ("CANCELLED", "None", Cause.KILLED, "cancelled"),
        ("OUT_OF_MEMORY", "OutOfMemory", Cause.OUT_OF_MEMORY, "memory"),
        ("PREEMPTED", "None", Cause.SCHEDULER, "preempted"),
        ("FAILED", "NonZeroExitCode", Cause.KILLED, "FAILED"),
    ],
)
def test_what_became_of_a_job(tmp_path, monkeypatch, state, reason, cause, words):
    said = f"JobId=7 JobName=x JobState={state} Reason={reason} Dependency=(null) NodeList=n[1-2]"
    fake_scontrol(tmp_path, monkeypatch, said)
    told = Slurm().fate("7", tmp_path)
    assert told.cause is cause
    assert words in told.message and "job 7 on n[1-2]" in told.message


@pytest.mark.env
def test_a_job_whose_nodes_still_clean_up_is_asked_for_again(tmp_path, monkeypatch):
    said = "Reason=NodeDown Dependency=(null) NodeList=n1"
    fake_scontrol(tmp_path, monkeypatch, f"JobState=NODE_FAIL {said}")
    script, asked = tmp_path / "scontrol", tmp_path / "asked"
    first = f"[ -e {asked} ] || {{ touch {asked}; echo 'JobState=COMPLETING {said}'; exit; }}"
    script.write_text(script.read_text().replace("cat ", f"{first}\ncat ", 1))
    assert Slurm().fate("7", tmp_path).cause is Cause.NODE_FAILURE
    assert asked.exists()


@pytest.mark.env
def test_a_job_that_never_ends_to_clean_up_is_called_what_slurm_calls_it(tmp_path, monkeypatch):
    fake_scontrol(tmp_path, monkeypatch, "JobState=COMPLETING Reason=None Dependency=(null) NodeList=n1")
    monkeypatch.setattr(scheduler, "_CLEANING_S", 0)
    told = Slurm().fate("7", tmp_path)
    assert told.cause is Cause.KILLED and "COMPLETING" in told.message


@pytest.mark.env
def test_a_job_killed_for_memory_may_be_called_failed(tmp_path, monkeypatch):
    fake_scontrol(tmp_path, monkeypatch, "JobState=FAILED Reason=None Dependency=(null) NodeList=n1")
    (tmp_path / "rule_x").mkdir()
    (tmp_path / "rule_x" / "7.log").write_text("slurmstepd: error: JobId=7 exceeded memory limit\n")
    assert Slurm().fate("7", tmp_path).cause is Cause.OUT_OF_MEMORY
    assert Slurm().fate("8", tmp_path).cause is Cause.KILLED


def calm(host: str = "n1", **change: object) -> dict[str, object]:
    return {
        "host": host,
        "load": [0.0, 0.0, 0.0],
        "foreign": [],
        "unseen_cores": 0.0,
        "memory_available_bytes": 8 << 30,
        "memory_total_bytes": 16 << 30,
        "swapped_bytes": 0,
        "disk": None,
        "clock_mhz": None,
        "throttle_count": 3,
        "gpus": [],
    } | change


GPU = {"index": 0, "throttle_reasons": 0, "processes": []}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"foreign": [{"pid": 5, "name": "make", "cores": 0.8}]}, r"make \(pid 5\) .*0\.8 cores"),
        ({"unseen_cores": 1.0}, "1 cores of n1"),
        ({"memory_available_bytes": 1 << 20}, "memory .*n1"),
        ({"swapped_bytes": 4096}, "n1 swapped"),
        ({"throttle_count": 4}, "n1 .*throttled"),
        ({"gpus": [GPU | {"throttle_reasons": 0x8}]}, r"GPU 0 of n1 .*0x8"),
        ({"gpus": [GPU | {"processes": [77]}]}, "pid 77 .*GPU 0 of n1"),
    ],
)
def test_each_disturbance_is_told_in_words(change, told):
    assert disturbances([calm()], [calm()]) == []
    (reason,) = disturbances([calm()], [calm(**change)])
    assert re.search(told, reason)


def test_a_node_that_does_not_answer_is_named():
    missing = {"host": "n2", "missing": True}
    (reason,) = disturbances([calm(), calm("n2")], [calm(), missing])
    assert reason.startswith("n2 ") and "answer" in reason


@pytest.mark.env
def test_the_guard_sees_a_busy_stranger_and_not_itself():
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    # Beside busy neighbours it would have too small a share of a core.
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, busy.pid, -20)
    try:
        limit = time.monotonic() + 600
        while not any(one["pid"] == busy.pid for one in snapshot()["foreign"]):
            assert time.monotonic() < limit, "never seen"
        assert all(one["pid"] != os.getpid() for one in Guard().look()[0]["foreign"])
    finally:
        busy.kill()
        busy.wait()
