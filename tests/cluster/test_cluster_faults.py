"""Faults on a real Slurm: each ends in a report with the right cause, and in nothing else lost."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from clustered import PLUGINS, ClusterRun
from clusters import VirtualCluster, eventually

pytestmark = [pytest.mark.study, pytest.mark.cluster]

HEAD = """
name: {name}
plugins: [plugins]
limits: {{seconds: 300, memory_mb: 600, repeats_if_disturbed: 0}}
workloads: {{iris-mlp-ce: {{epochs: 2}}}}
"""
# States come from sacct here, and from squeue in the other module.
ACCOUNTING = True
# Several cells wait in one block, one after another: each meets another fault.
WAITING = (
    HEAD
    + """
train:
  repeats: {repeats}
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [numpy, test-waits], strategies: [single]}}
"""
)
FOUR_NODES = (
    HEAD
    + """
train:
  repeats: 1
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [numpy, test-waits], strategies: [mpi-allreduce],
       nodes: [4]}}
"""
)


def config(name: str, **more: str) -> tuple[str, ...]:
    extra = [f"{key}={value}" for key, value in more.items()]
    return ("--config", f"study={name}.yaml", "system=virtual-cluster", *extra)


@pytest.fixture(scope="module")
def checkout(make_checkout):
    made = make_checkout()
    shutil.copytree(PLUGINS / "cluster", made.folder / "plugins")
    return made


@pytest.fixture(autouse=True)
def nothing_goes_on(cluster):
    """End what a failed test left: the next one needs the cluster to itself."""
    yield
    for run in ClusterRun.started:
        run.kill()
    ClusterRun.started.clear()
    cluster.run("scancel", "--user=root", check=False)
    cluster.run("scontrol", "update", "node=n[1-4]", "state=resume", check=False)
    repair(cluster)


def start(checkout, name: str, template: str, **values):
    checkout.study(template.format(name=name, **values), f"{name}.yaml")
    return checkout.start(*config(name))


def pids_of(checkout, folder: Path) -> list[int]:
    """Return the ranks of the cell in `folder`, as the login node numbers them."""
    found = checkout.cluster.processes()
    return [p for p, a in found.items() if "transect.stages.train.worker" in a and folder.name in a
            and not a.startswith("srun") and "rank.py" not in a]  # fmt: skip


def job_of(folder: Path) -> str:
    return str(json.loads((folder / "attempt.json").read_text())["slurm_job"])


def causes(checkout, name: str) -> dict[str, str]:
    """Return status or cause of each training cell, by its readable id."""
    return {
        cell.removeprefix("train/"): record["cause"] or record["status"]
        for cell, record in checkout.records(name).items()
        if cell.startswith("train/")
    }


def nothing_left(checkout) -> None:
    eventually(lambda: not checkout.leftovers(), what="no payload on any node")
    assert not checkout.active_jobs()


def tells(run: ClusterRun, text: str, times: int = 1) -> None:
    """Wait until a run has printed a text."""
    try:
        eventually(lambda: run.text().count(text) >= times, what=repr(text))
    except AssertionError as error:
        raise AssertionError(f"{error}\n{run.text()}") from None


def repair(cluster) -> None:
    """Switch every node on again, for the next test, whatever became of this one.

    They need not be idle: this Slurm keeps a core of a job that ran while it was restarted.
    """
    states: dict[str, str] = {}

    def usable() -> bool:
        for node in ("n1", "n2", "n3", "n4"):
            states[node] = cluster.node_state(node)
            if "down" in states[node] or "*" in states[node]:
                cluster.start_node(node)
        return set(states.values()) <= {"idle", "mixed"}

    try:
        eventually(usable, what="four nodes that work")
    except AssertionError:
        raise AssertionError(f"{states}, jobs {cluster.jobs()}") from None


def submitted(checkout, block: str) -> int:
    """Return how many jobs sbatch was asked for to run a block, which may be one of several."""
    calls = (checkout.folder / "submissions.txt").read_text()
    return len(re.findall(rf"^rule_{re.escape(block)}(?:\.\d+)?$", calls, re.M))


def cell_of(folder: Path) -> str:
    return folder.name.split("~")[0]


def test_faults_one_after_another_end_each_in_its_own_cause(checkout):
    """Kill of a rank, scancel, time limit, restarts of slurmd and slurmctld, power cut."""
    name, cluster = "faults", checkout.cluster
    run = start(checkout, name, WAITING, repeats=6)
    expected: dict[str, str] = {}

    def kill_rank(folder: Path) -> str:
        (rank,) = pids_of(checkout, folder)
        cluster.run("kill", "-9", str(rank))
        return "killed"

    def scancel(folder: Path) -> str:
        cluster.run("scancel", job_of(folder))
        return "killed"

    def time_limit(folder: Path) -> str:
        cluster.run("scontrol", "update", f"jobid={job_of(folder)}", "timelimit=0")
        return "timeout"

    def restart_slurmd(folder: Path) -> str:
        where = cluster.run("squeue", "-h", "-j", job_of(folder), "-o", "%N").stdout.strip()
        cluster.restart("slurmd", where)
        (folder / "release").touch()
        return "ok"

    def restart_slurmctld(folder: Path) -> str:
        cluster.restart("slurmctld")
        (folder / "release").touch()
        return "ok"

    def power_cut(folder: Path) -> str:
        where = cluster.run("squeue", "-h", "-j", job_of(folder), "-o", "%N").stdout.strip()
        cluster.kill_node(where)
        return "node-failure"

    folder = None
    for fault in (kill_rank, restart_slurmd, restart_slurmctld, scancel, time_limit, power_cut):
        folder = checkout.waits(name, other_than=folder)
        expected[cell_of(folder)] = fault(folder)
    text = run.ends()
    found = causes(checkout, name)
    assert {cell: found[cell] for cell in expected} == expected, text
    # Two blocks, and one submission more for each fault that ended a job: no retry inside another
    # (https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/284).
    assert submitted(checkout, "train_wildcards_iris-mlp-ce.n1") == 2 + 3
    others = {cell: cause for cell, cause in found.items() if cell not in expected}
    assert set(others.values()) == {"ok"} and len(others) == 6
    nothing_left(checkout)
    report = (checkout.folder / "results" / name / "report.html").read_text()
    for cause in ("killed", "timeout", "node-failure"):
        assert cause in report
    messages = [r["message"] for r in checkout.records(name).values() if r["message"]]
    assert any("was cancelled" in m for m in messages), messages
    assert any("reached its time limit" in m for m in messages), messages


def test_a_power_cut_in_a_four_node_cell_spares_the_others(checkout):
    """The stock executor then excludes all four nodes, and nothing can be submitted again."""
    name, cluster = "four", checkout.cluster
    run = start(checkout, name, FOUR_NODES)
    folder = checkout.waits(name)
    cluster.kill_node("n3")
    eventually(lambda: "down" in cluster.node_state("n3"), what="n3 down")
    # Somebody repairs it: the other cells of the block need four nodes.
    cluster.start_node("n3")
    text = run.ends()
    found = causes(checkout, name)
    assert found.pop(cell_of(folder)) == "node-failure", text
    messages = [r["message"] for r in checkout.records(name).values() if r["message"]]
    assert set(found.values()) == {"ok"}, (messages, text)
    assert "--exclude" not in (checkout.folder / "submissions.txt").read_text()
    assert submitted(checkout, "train_wildcards_iris-mlp-ce.n4") == 2
    # Slurm's own requeueing would run the job a second time beside Snakemake's
    # (https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/353).
    assert {job["restarts"] for job in cluster.jobs()} == {"0"}
    nothing_left(checkout)


def test_the_failing_study_has_the_causes_that_it_has_on_one_machine(make_checkout):
    checkout = make_checkout()
    shutil.copytree(PLUGINS / "failing", checkout.folder / "plugins")
    frameworks = "[numpy, test-raises, test-killed, test-sleeps, test-eats-memory, test-wrong, test-needs-module]"  # fmt: skip
    text = (
        HEAD.replace("seconds: 300", "seconds: 30")
        + f"""
train:
  repeats: 1
  grids:
    - {{{{workloads: [iris-mlp-ce], frameworks: {frameworks}, strategies: [single]}}}}
    - {{{{workloads: [iris-mlp-ce], frameworks: [test-killed, test-raises],
       strategies: [mpi-allreduce], nodes: [2]}}}}
"""
    )
    checkout.study(text.format(name="failing"), "failing.yaml")
    checkout.start(*config("failing")).ends()
    found = {
        re.sub(r"^iris-mlp-ce\.|\.b16.*", "", cell): cause
        for cell, cause in causes(checkout, "failing").items()
    }
    assert found == {
        "numpy.single.n1x1": "ok",
        "test-raises.single.n1x1": "crash",
        "test-killed.single.n1x1": "killed",
        "test-sleeps.single.n1x1": "timeout",
        "test-eats-memory.single.n1x1": "out-of-memory",
        "test-wrong.single.n1x1": "wrong-result",
        "test-needs-module.single.n1x1": "missing-dependency",
        "test-killed.mpi-allreduce.n2x1": "killed",
        "test-raises.mpi-allreduce.n2x1": "crash",
    }
    nothing_left(checkout)


def test_interrupted_runs_go_on_and_run_nothing_twice(checkout):
    """SIGINT, SIGKILL and SIGTERM to Snakemake, each followed by a new start."""
    name = "stopped"
    run = start(checkout, name, WAITING, repeats=3)
    done: dict[str, str] = {}
    waiting, since = None, 0.0
    for number in (signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
        folder = checkout.waits(name, since=since)
        # The cell that was interrupted is the one that waits again.
        assert waiting in (None, folder)
        (folder / "release").touch()
        eventually((folder / "record.json").exists, what="the cell's record")
        if number != signal.SIGTERM:
            waiting = checkout.waits(name, other_than=folder)
        done = {c: r["started"] for c, r in checkout.records(name).items()}
        run.signal(number)
        text = run.ends(code=None)
        if number == signal.SIGINT:
            eventually(lambda: not checkout.active_jobs(), what="an empty queue")
        since = time.time()
        run = checkout.start(*config(name))
        if number == signal.SIGKILL:
            tells(run, "of a run that no longer lives")
    text = run.ends()
    after = {c: r["started"] for c, r in checkout.records(name).items()}
    assert {c: after[c] for c in done} == done, text
    assert set(causes(checkout, name).values()) == {"ok"}
    nothing_left(checkout)


def test_two_runs_in_one_results_folder_are_refused_and_in_two_are_not(checkout, make_checkout):
    run = start(checkout, "first", WAITING, repeats=1)
    folder = checkout.waits("first")
    checkout.study(WAITING.format(name="second", repeats=1), "second.yaml")
    refused = checkout.start(*config("second")).ends(code=None)
    assert "is in use by root's run of study 'first' (pid" in refused
    other = make_checkout()
    shutil.copytree(PLUGINS / "cluster", other.folder / "plugins")
    other.study(WAITING.format(name="second", repeats=1), "second.yaml")
    results = checkout.folder / "results"
    shared = other.start(*config("second", results=str(results))).ends(code=None)
    assert "is in use by root's run of study 'first' (pid" in shared
    beside = other.start(*config("second"))
    released = other.waits("second")
    for each in (folder, released):
        (each / "release").touch()
    run.ends()
    beside.ends()
    assert set(causes(checkout, "first").values()) == {"ok"}
    assert set(causes(other, "second").values()) == {"ok"}


def test_a_queue_that_is_full_for_a_while_is_waited_for(checkout):
    """The stock executor fails a job at the first refusal."""
    cluster = checkout.cluster
    cluster.run("scontrol", "update", "partition=cpu", "state=inactive")
    shim = checkout.folder / "shims" / "sbatch"
    kept = shim.read_text()
    # What a site's limit on submitted jobs answers, until somebody's jobs have left the queue.
    refusal = 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user\'s size and/or time limits)'  # fmt: skip
    shim.write_text(f'#!/bin/sh\n[ -e {checkout.folder}/full ] && {{ echo "{refusal}" >&2; exit 1; }}\n'
                    + kept.removeprefix("#!/bin/sh\n"))  # fmt: skip
    (checkout.folder / "full").touch()
    try:
        run = start(checkout, "full", WAITING, repeats=1)
        tells(run, "Slurm refuses prepare.n1 for now", times=2)
        (checkout.folder / "full").unlink()
        cluster.run("scontrol", "update", "partition=cpu", "state=up")
        folder = checkout.waits("full")
        (folder / "release").touch()
        text = run.ends()
    finally:
        shim.write_text(kept)
        (checkout.folder / "full").unlink(missing_ok=True)
        cluster.run("scontrol", "update", "partition=cpu", "state=up")
    assert set(causes(checkout, "full").values()) == {"ok"}
    assert "Error in rule" not in text


def test_a_job_that_is_refused_for_good_ends_in_a_report(checkout):
    name = "refused"
    checkout.study(WAITING.format(name=name, repeats=1).replace("test-waits", "test-edited"),
                   f"{name}.yaml")  # fmt: skip
    system = (checkout.folder / "config/systems/virtual-cluster.yaml").read_text()
    mine = checkout.folder / "mine.yaml"
    mine.write_text(system + "account: nobody\n")
    arguments = ("--config", f"study={name}.yaml", "system=mine.yaml")
    text = checkout.start(*arguments).ends(code=1)
    records = checkout.records(name)
    assert {r["cause"] for c, r in records.items() if not c.startswith("train")} == {"scheduler"}
    assert {r["cause"] for c, r in records.items() if c.startswith("train")} == {
        "missing-dependency"
    }
    assert "nobody" in records["data/iris-mlp-ce"]["message"], records["data/iris-mlp-ce"][
        "message"
    ]
    assert (checkout.folder / "results" / name / "report.html").exists()
    assert "`transect retry` runs them again" in text
    mine.write_text(system + "account: transect\n")
    told = checkout.transect("retry", f"results/{name}", "--skipped").stdout
    assert "4 records" in told
    checkout.start(*arguments).ends()
    assert set(causes(checkout, name).values()) == {"ok"}


def test_states_that_cannot_be_asked_are_asked_again(checkout):
    """The stock executor drops its jobs when sacct fails often enough, and waits for ever.

    https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/331
    """
    shim = checkout.folder / "shims" / "sacct"
    calls = checkout.folder / "sacct-calls"
    shim.write_text(f"#!/bin/sh\necho . >> {calls}\nexit 1\n")
    shim.chmod(0o755)
    try:
        run = start(checkout, "unasked", WAITING, repeats=1)
        # Every look at the queue is five attempts.
        eventually(
            lambda: calls.exists() and len(calls.read_text().split()) >= 12,
            what="sacct to be asked",
        )
    finally:
        shim.unlink()
    (checkout.waits("unasked") / "release").touch()
    run.ends()
    assert set(causes(checkout, "unasked").values()) == {"ok"}


def test_a_drained_node_is_worked_around(checkout):
    cluster = checkout.cluster
    cluster.run("scontrol", "update", "node=n1,n2", "state=drain", "reason=test")
    try:
        run = start(checkout, "drained", WAITING, repeats=1)
        folder = checkout.waits("drained")
        where = cluster.run("squeue", "-h", "-j", job_of(folder), "-o", "%N").stdout.strip()
        # The node of a running cell is drained too: the cell ends in peace.
        cluster.run("scontrol", "update", f"node={where}", "state=drain", "reason=test")
        (folder / "release").touch()
        run.ends()
    finally:
        cluster.run("scontrol", "update", "node=n1,n2,n3,n4", "state=resume", check=False)
    assert where in ("n3", "n4")
    assert set(causes(checkout, "drained").values()) == {"ok"}


@pytest.fixture
def small_results(make_checkout):
    """A checkout whose results lie on 24 MB, on a cluster that was made after the mount."""
    checkout = make_checkout()
    shutil.copytree(PLUGINS / "cluster", checkout.folder / "plugins")
    small = checkout.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(small)], check=True)
    try:
        with VirtualCluster("small", nodes=1, gpu_nodes=0) as cluster:
            checkout.cluster = cluster
            yield checkout, small
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def test_a_full_file_system_loses_nothing(small_results):
    checkout, small = small_results
    checkout.study(WAITING.format(name="narrow", repeats=2), "narrow.yaml")
    system = checkout.folder / "one-node.yaml"
    text = (checkout.folder / "config/systems/virtual-cluster.yaml").read_text()
    system.write_text(text.replace("nodes: 4", "nodes: 1"))
    arguments = ("--config", "study=narrow.yaml", "system=one-node.yaml", "results=small/results")
    run = checkout.start(*arguments)
    (checkout.folder / "results").symlink_to(small / "results")
    folder = checkout.waits("narrow")
    ballast = small / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 4096)
    (folder / "release").symlink_to("/")  # a link takes no room here
    eventually(lambda: "Trying to restart job" in run.text(), what="a failed job")
    freed = time.time()
    ballast.unlink()
    # The cell was not to blame: it runs again, and waits again.
    for _ in range(2):
        waiting = checkout.waits("narrow", since=freed)
        (waiting / "release").touch()
        eventually((waiting / "record.json").exists, what="its record")
    run.ends()
    assert set(causes(checkout, "narrow").values()) == {"ok"}
    logs = checkout.folder.glob(".snakemake/slurm_logs/**/*.log")
    assert any("No space left" in log.read_text() or "no room" in log.read_text() for log in logs)
