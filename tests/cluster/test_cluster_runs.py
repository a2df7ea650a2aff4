"""Runs that fail, are stopped, refused or meet others: each costs itself alone, and all run at once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from clustered import PLUGINS, WAITING, causes, config, job_of, nothing_left, start, tells, waits_made
from clusters import VirtualCluster, eventually
from side_by_side import beside

pytestmark = pytest.mark.cluster

FAILING = """
name: failing
plugins: [plugins]
limits: {seconds: 120, memory_mb: 600, repeats_if_disturbed: 0}
workloads: {iris-mlp-ce: {epochs: 2}}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp-ce], strategies: [single], frameworks: [numpy, test-raises, test-killed,
       test-sleeps, test-eats-memory, test-wrong, test-needs-module]}
    - {workloads: [iris-mlp-ce], frameworks: [test-killed, test-raises],
       strategies: [mpi-allreduce], nodes: [2]}
"""


@beside
def test_the_failing_study_has_the_causes_that_it_has_on_one_machine(make):
    checkout = make()
    shutil.copytree(PLUGINS / "failing", checkout.folder / "plugins")
    checkout.study(FAILING, "failing.yaml")
    checkout.start(*config("failing")).ends()
    found = {re.sub(r"^iris-mlp-ce\.|\.b16.*", "", cell): cause for cell, cause in causes(checkout, "failing").items()}
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


@beside
def test_interrupted_runs_go_on_and_run_nothing_twice(make):
    """SIGINT, SIGKILL and SIGTERM to Snakemake, each followed by a new start."""
    name, checkout = "stopped", waits_made(make)
    run = start(checkout, name, repeats=3)
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
            tells(run, "no longer lives")
    text = run.ends()
    after = {c: r["started"] for c, r in checkout.records(name).items()}
    assert {c: after[c] for c in done} == done, text
    assert set(causes(checkout, name).values()) == {"ok"}
    nothing_left(checkout)


@beside
def test_two_studies_run_at_once_and_one_study_only_once(make):
    first_clone, second_clone = waits_made(make), waits_made(make)
    # Its cell waits for as long as the other runs take.
    first = start(first_clone, "first", repeats=1, seconds=1200)
    waiting = first_clone.waits("first")
    # Both need the same environment, in one clone and in two on one results folder.
    second = start(first_clone, "second", repeats=1)
    results = {"results": str(first_clone.folder / "results")}
    second_clone.study(WAITING.format(name="first", repeats=1, seconds=1200), "first.yaml")
    refused = second_clone.start(*config("first", **results))
    jobs = [job["id"] for job in first_clone.active_jobs() if job["name"].startswith("train.first.")]
    (job,) = jobs
    pattern = rf"study 'first' .*pid \d+ on login.*jobs .*\b{job}\b"
    assert re.search(pattern, refused.ends(code=None)), refused.text()
    assert refused.process.returncode != 0
    for folder in (first_clone.waits("second"), waiting):
        (folder / "release").touch()
    first.ends()
    second.ends()
    assert set(causes(first_clone, "first").values()) == {"ok"}
    assert set(causes(first_clone, "second").values()) == {"ok"}


@beside
def test_a_run_that_hangs_is_taken_over_from_another_login_node(make):
    """No unlocking, no deleting: its job is cancelled, and it ends when it goes on."""
    name, checkout = "moved", waits_made(make)
    hung = start(checkout, name, repeats=1, seconds=1200)
    job = job_of(checkout.waits(name))
    claim = checkout.folder / f"results/.transect/{name}.json"
    pid = str(json.loads(claim.read_text())["pid"])
    checkout.cluster.run("kill", "-STOP", pid)
    refused = checkout.start(*config(name), node="n12")
    while refused.process.poll() is None:
        os.utime(claim)  # a start on a busy machine can take longer than the silence that counts as an end
        time.sleep(1)
    output = refused.ends(code=2)
    assert re.search(rf"pid {pid} on login.*jobs {job} in .*sign of life \d+ s ago", output), output
    os.utime(claim, (1, 1))
    since = time.time()
    after = checkout.start(*config(name), node="n12")
    tells(after, f"cancels 1 jobs of a run that no longer lives: {job}")
    folder = checkout.waits(name, since=since)
    checkout.cluster.run("kill", "-CONT", pid)
    assert "another one has begun" in hung.ends(code=None)
    assert hung.process.returncode != 0
    assert job_of(folder) != job
    (folder / "release").touch()
    after.ends()
    assert set(causes(checkout, name).values()) == {"ok"}
    nothing_left(checkout)


@beside
def test_a_job_that_is_refused_for_good_ends_in_a_report(make):
    name, checkout = "refused", waits_made(make)
    text = WAITING.format(name=name, repeats=1, seconds=300)
    checkout.study(text.replace("test-waits", "test-edited"), f"{name}.yaml")
    system = (checkout.folder / "config/systems/virtual-cluster.yaml").read_text()
    mine = checkout.folder / "mine.yaml"
    mine.write_text(system + "account: nobody\n")
    arguments = ("--config", f"study={name}.yaml", "system=mine.yaml")
    text = checkout.start(*arguments).ends(code=1)
    records = checkout.records(name)
    assert {r["cause"] for c, r in records.items() if not c.startswith("train")} == {"scheduler"}
    assert {r["cause"] for c, r in records.items() if c.startswith("train")} == {"missing-dependency"}
    message = records["dataset/iris-mlp-ce"]["message"]
    assert "nobody" in message, message
    assert (checkout.folder / "results" / name / "report.html").exists()
    assert "`transect reset`" in text
    mine.write_text(system + "account: transect\n")
    output = checkout.transect("reset", f"results/{name}", "--skipped").stdout
    assert "4 records" in output
    checkout.start(*arguments).ends()
    assert set(causes(checkout, name).values()) == {"ok"}


@contextlib.contextmanager
def small_results(make):
    """A checkout whose results lie on 24 MB, on a cluster that was made after the mount.

    It has no accounting: states of its jobs come from squeue, and from sacct in all other tests.
    """
    checkout = waits_made(make)
    small = checkout.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(small)], check=True)
    try:
        with VirtualCluster("small", nodes=1, gpu_nodes=0) as cluster:
            checkout.cluster = cluster
            try:
                yield checkout, small
            finally:
                checkout.end()
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)


@beside
def test_a_full_file_system_loses_nothing(make):
    with small_results(make) as (checkout, small):
        text = WAITING.format(name="narrow", repeats=2, seconds=300)
        checkout.study(text, "narrow.yaml")
        system = (checkout.folder / "config/systems/virtual-cluster.yaml").read_text()
        (checkout.folder / "one-node.yaml").write_text(system.replace("nodes: 4", "nodes: 1"))
        where = ("system=one-node.yaml", "results=small/results")
        run = checkout.start("--config", "study=narrow.yaml", *where)
        (checkout.folder / "results").symlink_to(small / "results")
        folder = checkout.waits("narrow")
        ballast = small / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as stream:
            while True:
                stream.write(b"x" * 4096)
        (folder / "release").symlink_to("/")  # a link takes no room here
        tells(run, "Trying to restart job")
        freed = time.time()
        ballast.unlink()
        # The cell was not to blame: it runs again, and waits again.
        for _ in range(2):
            waiting = checkout.waits("narrow", since=freed)
            (waiting / "release").touch()
            eventually((waiting / "record.json").exists, what="its record")
        run.ends()
        assert set(causes(checkout, "narrow").values()) == {"ok"}
        logs = [log.read_text() for log in checkout.folder.glob(".snakemake/slurm_logs/**/*.log")]
        assert any("No space left" in log or "no room" in log for log in logs)
