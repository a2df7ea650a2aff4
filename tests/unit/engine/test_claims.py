"""Who holds a study, a block's cells and a machine: one at a time, on whatever host, for as long as it lives."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.adapters.slurm import scheduler as slurm_adapter
from transect.adapters.snakemake.main_flow import MainFlow
from transect.domain.cell import Cell
from transect.domain.errors import BadInput, Interruption
from transect.domain.owner import SILENT_S, Owner
from transect.domain.paths import StudyPaths
from transect.engine import locks, submissions
from transect.engine.claim import Claim, check_environments
from transect.engine.job import Job, check_locks
from transect.engine.locks import Busy, Held, leased, runs_elsewhere

ELSEWHERE = {"user": "u", "pid": 1, "host": "elsewhere", "study": "s", "start": 1, "since": "t", "token": "theirs"}


def held_by(path: Path, silent_s: float = 0.0, **facts: object) -> Path:
    """Write what another process has written, and touched last some seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(ELSEWHERE | facts))
    then = time.time() - silent_s
    os.utime(path, (then, then))
    return path


@pytest.fixture
def paths(tmp_path, monkeypatch) -> StudyPaths:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return StudyPaths(results=tmp_path, study="s")


@pytest.fixture
def slurm(monkeypatch) -> dict[str, str | None]:
    """What Slurm's programs answer, by their name; None, and at first, that they do not."""
    answers: dict[str, str | None] = {}
    asked = lambda *command, patience_s=0: answers.get(command[0])  # noqa: E731
    monkeypatch.setattr(slurm_adapter, "ask", asked)
    monkeypatch.setattr(slurm_adapter.shutil, "which", lambda _: "/usr/bin/squeue")
    monkeypatch.setattr(submissions, "_POLL_S", 0)
    return answers


def test_a_run_on_another_host_is_named_with_its_jobs_and_what_to_do(paths, slurm):
    held_by(paths.claim, silent_s=40)
    submissions.begin(paths.runs / "1a2b.json", ["train.s.1a2b"])
    slurm["squeue"] = "17\n18\n"
    pattern = rf"pid 1 on elsewhere.*jobs 17, 18 in.* (40|41) s ago: after {SILENT_S:.0f} s .*counts as ended"
    with pytest.raises(BadInput, match=pattern):
        Claim(paths.results, "s").take()
    assert Claim(paths.results, "s").held_by_another()


def test_a_run_on_another_host_that_gives_no_sign_of_life_is_taken_over(paths):
    held_by(paths.claim, silent_s=SILENT_S + 5)
    claim = Claim(paths.results, "s")
    assert not claim.held_by_another()
    claim.take()
    assert json.loads(paths.claim.read_text())["pid"] == os.getpid()
    claim.give_back()


def test_who_was_suspended_meanwhile_gives_up_and_leaves_the_others_claim(tmp_path):
    lost = []
    held = Held(tmp_path / "x.json", lambda: lost.append(1))
    assert held.take() is None
    held.beat()
    assert lost == []
    held_by(held.path)
    held.beat()
    held.beat()
    assert lost == [1] and not held.held
    held.give_back()
    assert json.loads(held.path.read_text())["token"] == "theirs"


def test_a_sign_of_life_is_a_new_time_and_brings_a_removed_file_back(tmp_path):
    held = Held(tmp_path / "x.json", pytest.fail)
    held.take()
    os.utime(held.path, (1, 1))
    held.beat()
    assert held.path.stat().st_mtime > 1
    held.path.unlink()
    held.beat()
    assert held.path.exists()
    held.give_back()
    held.beat()
    assert list(tmp_path.iterdir()) == []


def test_of_two_that_find_a_dead_holder_one_takes_over(tmp_path):
    """The slower one has seen the dead one's file, and finds the faster one's in its place."""
    path = held_by(tmp_path / "x.json", silent_s=SILENT_S + 5)
    seen = path.read_text()
    faster, slower = Held(path, pytest.fail), Held(path, pytest.fail)
    assert faster.take() is None
    changed = path.stat().st_ctime_ns
    slower._remove(seen)
    # Not even moved away for a moment, in which a third one could take it.
    assert path.stat().st_ctime_ns == changed
    assert (slower.take() or {})["pid"] == os.getpid()
    faster.beat()
    assert faster.held and not slower.held
    faster.give_back()
    assert list(tmp_path.iterdir()) == []


def test_a_dead_holder_is_removed_by_one_at_a_time(tmp_path):
    path = held_by(tmp_path / "x.json", silent_s=SILENT_S + 5)
    turn = held_by(tmp_path / ".x.json.removal")
    held = Held(path, pytest.fail)
    assert held.take() == {}
    # Who had the turn was killed.
    held_by(turn, silent_s=SILENT_S + 5)
    assert held.take() is None
    held.give_back()
    assert list(tmp_path.iterdir()) == []


def test_a_holder_that_has_not_yet_said_who_it_is_counts_until_it_is_silent(tmp_path):
    path = held_by(tmp_path / "x.json", silent_s=60)
    path.write_text("")
    os.utime(path, (time.time() - 60,) * 2)
    held = Held(path, pytest.fail)
    assert held.take() == {}
    os.utime(path, (1, 1))
    assert held.take() is None
    held.give_back()


# Of a process that has gone, with this number: who it may be is told by its start, its kernel and its user.
GONE = 2**30
NOT_MINE = Owner.me().start - 1


@pytest.mark.parametrize(
    ("changes", "silent_s", "lives"),
    [
        ({}, 0, True),
        # A number that is used again is another process.
        ({"start": NOT_MINE}, 0, False),
        ({"pid": GONE}, 5, False),
        # Two containers that do not see each other's processes have the name of their host.
        ({"pid": GONE, "kernel": "another"}, 5, True),
        ({"kernel": "another"}, SILENT_S + 5, False),
        # As with `hidepid` on many login nodes.
        ({"pid": GONE, "user": "somebody"}, 5, True),
        ({"pid": GONE, "user": "somebody"}, SILENT_S + 5, False),
    ],
)
def test_an_owner_lives_by_its_process_or_its_signs_of_life(changes, silent_s, lives):
    assert replace(Owner.me(), **changes).lives(silent_s) is lives


def test_an_owner_is_told_of_in_files_and_its_start_does_not_follow_the_clock():
    me = Owner.me()
    assert Owner.of(json.loads(json.dumps(me.facts() | {"more": 1}))) == me
    assert replace(Owner.of_text(me.text), user=me.user) == me
    up_s = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 < me.start / os.sysconf("SC_CLK_TCK") <= up_s < time.time() / 2


@pytest.mark.parametrize(
    ("says", "silent_s", "lives"),
    [
        ("JobState=RUNNING", SILENT_S + 5, True),
        ("JobState=SUSPENDED", SILENT_S + 5, True),
        ("JobState=COMPLETING", SILENT_S + 5, True),
        ("JobState=CANCELLED", 0, False),
        ("JobState=NODE_FAIL", 0, False),
        # Slurm has forgotten the job, does not answer, or is not there.
        (None, 0, True),
        (None, SILENT_S + 5, False),
    ],
)
def test_a_job_holds_its_cells_for_as_long_as_slurm_says_or_it_gives_signs_of_life(
    paths, slurm, monkeypatch, says, silent_s, lives
):
    monkeypatch.setattr(slurm_adapter, "_CLEANING_S", 0)
    slurm["scontrol"] = says and f"JobId=17 {says} Reason=None"
    file = held_by(paths.lease("train", "n1"), silent_s, job="17")
    holder = runs_elsewhere(paths, "train", "n1")
    assert (holder is not None) == lives
    if lives:
        assert "job 17" in str(holder)
        return
    with leased(paths, [("train", "n1")]):
        assert json.loads(file.read_text())["pid"] == os.getpid() and paths.machine.exists()
    assert not file.exists() and not paths.machine.exists()


def test_cells_that_another_job_goes_on_running_are_left_to_it(paths, slurm, monkeypatch, capsys):
    slurm["scontrol"] = "JobId=17 JobState=RUNNING Reason=None"
    held_by(paths.lease("train", "n1"), job="17")
    monkeypatch.setattr(locks, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(locks, "_POLL_S", 0.02)
    with pytest.raises(Busy, match=r"train\.n1.*job 17 .*`scancel 17`"), leased(paths, [("train", "n1")]):
        pytest.fail("two jobs run the same cells")
    assert "train.n1 waits: " in capsys.readouterr().err
    # Its own machine was given back.
    assert not paths.machine.exists()


def test_who_waits_ends_with_its_snakemake(paths, slurm, monkeypatch):
    held_by(paths.lease("train", "n1"))
    monkeypatch.setattr(locks, "is_abandoned", lambda: True)
    with pytest.raises(Interruption), leased(paths, [("train", "n1")]):
        pytest.fail("taken")


def test_in_a_job_the_machine_is_the_schedulers_to_give(paths, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "18")
    with leased(paths, [("train", "n1")]):
        assert json.loads(paths.lease("train", "n1").read_text())["job"] == "18"
        assert not paths.machine.exists()


def test_an_environment_that_another_clone_has_exchanged_is_not_used(paths):
    spec = {"environment": "base", "lock": "a", "other_environments": {"torch": "b"}}
    job = Job(
        spec=spec,
        cell=Cell.of(stage="dataset", workload="w"),
        paths=paths,
        python="",
        bin=None,
        environment={"lock_hash": "a"},
        others={"torch": {"lock_hash": "b"}},
    )
    check_locks(job)
    for change in ({"environment": {"lock_hash": "c"}}, {"others": {"torch": {"lock_hash": "c"}}}):
        with pytest.raises(BadInput, match=r"lock c, .* planned with [ab]: .*results=FOLDER"):
            check_locks(replace(job, **change))


def test_an_environment_that_another_study_runs_with_is_not_exchanged(paths):
    second_study = replace(paths, study="other")
    second_study.specs.mkdir(parents=True)
    second_study.flow.write_text(json.dumps({"environments": {"base": "a", "torch": "b"}}))
    held_by(second_study.claim)
    check_environments(paths, {"base": "a", "jax": "c"})
    check_environments(second_study, {"base": "c"})
    with pytest.raises(BadInput, match=r"study 'other' .*environment torch .*results=FOLDER"):
        check_environments(paths, {"base": "a", "torch": "c"})
    held_by(second_study.claim, silent_s=SILENT_S + 5)
    check_environments(paths, {"torch": "c"})


def test_a_dry_run_and_one_beside_another_study_leave_environments_that_they_cannot_see(paths):
    file = paths.results / "s.yaml"
    file.write_text(
        "name: s\ntrain: {repeats: 1, grids: [{workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}]}\n"
    )
    dry = SimpleNamespace(executor_plugin="local", dryrun=True, touch=False, dag=SimpleNamespace(forcefiles=set()))
    flow = MainFlow(str(file), "laptop", str(paths.results), strict=False, workflow=dry)
    locks = flow._facts.environments
    (name,) = locks
    stamp = held_by(paths.environment(name), status="ok", lock_hash=locks[name], python="/no/python")
    flow.look()
    assert dry.dag.forcefiles == {str(stamp)} and stamp.exists()
    second_study = replace(paths, study="other")
    second_study.specs.mkdir(parents=True)
    second_study.flow.write_text(json.dumps({"environments": locks}))
    held_by(second_study.claim)
    run = SimpleNamespace(executor_plugin="local", dryrun=False, touch=False, dag=SimpleNamespace(forcefiles=set()))
    flow = MainFlow(str(file), "laptop", str(paths.results), strict=False, workflow=run)
    with pytest.raises(BadInput, match="study 'other' runs"):
        list(flow.stale())
    assert stamp.exists()
    second_study.claim.unlink()
    # As the rule of environments asks, of a call that names one: Snakemake has seen its stamp by then.
    assert flow.environment_inputs() == []
    assert not stamp.exists() and run.dag.forcefiles == {str(stamp)}


class Queue:
    """A queue in which `jobs` are, until scancel removes them or after some questions."""

    def __init__(self, jobs: str, *, ours: bool = True) -> None:
        self.jobs, self.ours, self.asked = jobs, ours, []

    def __call__(self, *command: str, patience_s: float = 0) -> str | None:
        self.asked.append(command)
        if command[0] == "squeue":
            return self.jobs
        if self.ours:
            self.jobs = ""
        return "" if self.ours else None


def test_jobs_of_an_earlier_run_are_cancelled_whichever_host_it_was_on(paths, slurm, monkeypatch, capsys):
    queue = Queue("17\n18\n")
    monkeypatch.setattr(slurm_adapter, "ask", queue)
    submissions.begin(paths.runs / "1a2b.json", ["train.s.1a2b", "job.s.1a2b"])
    submissions.cancel_earlier(paths.runs, "s")
    assert ("scancel", "17", "18") in queue.asked
    assert queue.asked[0][-1] == "train.s.1a2b,job.s.1a2b"
    assert "17, 18" in capsys.readouterr().err
    assert not list(paths.runs.iterdir())


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        (Queue("17\n18\n", ours=False), r"jobs 17, 18 .*`scancel 17 18`"),
        (lambda *_, patience_s=0: None, r"does not answer"),
    ],
)
def test_jobs_that_cannot_be_cancelled_keep_the_next_run_from_its_cells(paths, slurm, monkeypatch, queue, message):
    monkeypatch.setattr(slurm_adapter, "ask", queue)
    submissions.begin(paths.runs / "1a2b.json", ["train.s.1a2b"])
    with pytest.raises(BadInput, match=message):
        submissions.cancel_earlier(paths.runs, "s")
    assert list(paths.runs.iterdir())


def test_a_claim_that_cannot_be_read_is_somebodys(monkeypatch, tmp_path):
    taken = Claim(tmp_path, "study")
    taken.path.parent.mkdir()
    taken.path.write_text("{}")
    read = Path.read_text

    def refuse(path: Path, *arguments: str, **more: str) -> str:
        if path == taken.path:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *arguments, **more)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert taken.held_by_another()
    with pytest.raises(BadInput, match="is in use by"):
        taken.take()
