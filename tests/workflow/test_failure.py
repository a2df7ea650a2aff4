"""Failure is data: whatever a cell does, the study ends in a report that names it."""

from __future__ import annotations

import json

import psutil
import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

STUDY = """
name: failing
plugins: [{plugins}]
limits: {{seconds: 12, memory_mb: 400}}
workloads: {{iris-mlp-ce: {{epochs: 3}}}}
train:
  repeats: 1
  grids:
    - workloads: [iris-mlp-ce]
      frameworks: [numpy, test-raises, test-killed, test-sleeps, test-eats-memory, test-wrong,
                   test-needs-module, test-broken-environment, test-kills-its-runner]
      strategies: [single]
    - {{workloads: [iris-mlp-ce], frameworks: [numpy, test-killed, test-raises],
       strategies: [mpi-allreduce], ranks: [2, 3]}}
    - {{workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [ddp-gloo], ranks: [2]}}
"""
CAUSES = {
    "numpy.single.n1x1": None,
    "numpy.mpi-allreduce.n1x2": None,
    "numpy.mpi-allreduce.n1x3": "unsupported",
    "numpy.ddp-gloo.n1x2": "unsupported",
    "test-raises.single.n1x1": "crash",
    "test-raises.mpi-allreduce.n1x2": "crash",
    "test-raises.mpi-allreduce.n1x3": "unsupported",
    "test-killed.single.n1x1": "killed",
    "test-killed.mpi-allreduce.n1x2": "killed",
    "test-killed.mpi-allreduce.n1x3": "unsupported",
    "test-sleeps.single.n1x1": "timeout",
    "test-eats-memory.single.n1x1": "out-of-memory",
    "test-wrong.single.n1x1": "wrong-result",
    "test-needs-module.single.n1x1": "missing-dependency",
    "test-broken-environment.single.n1x1": "missing-dependency",
    "test-kills-its-runner.single.n1x1": "killed",
}
CONFIG = "study=failing.yaml"


@pytest.fixture(scope="module")
def failed(checkout):
    """A checkout in which the failing study has run once, and that run."""
    plugins = ROOT / "tests" / "plugins" / "failing"
    (checkout.folder / "failing.yaml").write_text(STUDY.format(plugins=plugins))
    run = checkout.snakemake("--config", CONFIG)
    return checkout, run


def records(checkout):
    found = {}
    for path in checkout.folder.glob("results/failing/train/*/record.json"):
        record = json.loads(path.read_text())
        name = record["cell_id"].removeprefix("iris-mlp-ce.").split(".b16")[0]
        found[name] = record
    return found


def test_study_ends_in_a_report_and_exits_zero(failed):
    checkout, run = failed
    assert run.returncode == 0, run.stderr
    html = (checkout.folder / "results/failing/report.html").read_text()
    summary = json.loads((checkout.folder / "results/failing/summary.json").read_text())
    assert summary["counts"] == {"ok": 4, "failed": 8 + 2, "skipped": 4}
    for record in records(checkout).values():
        if record["cause"]:
            assert record["cell_id"] in html
    assert "<script>alert" not in html


def test_each_cell_has_its_cause(failed):
    checkout, _ = failed
    assert {name: one["cause"] for name, one in records(checkout).items()} == CAUSES


def test_log_tails_are_kept(failed):
    checkout, _ = failed
    found = records(checkout)
    assert "about to be killed" in found["test-killed.single.n1x1"]["log_tail"]
    assert "sleeping past the limit" in found["test-sleeps.single.n1x1"]["log_tail"]
    assert "Traceback" in found["test-raises.single.n1x1"]["log_tail"]


def test_no_process_is_left(failed):
    checkout, _ = failed
    mine = str(checkout.folder)
    left = []
    for process in psutil.process_iter():
        try:
            if mine in process.environ().get("TRANSECT_CELL", ""):
                left.append(process)
        except psutil.Error:
            continue
    assert left == []


def test_status_lists_and_retry_deletes_the_failed(failed):
    checkout, _ = failed
    told = json.loads(checkout.transect("status", "results/failing", "--json").stdout)
    assert told["counts"]["failed"] == 10
    assert {"test-killed.single" in one["cell"] for one in told["cells"]} == {True, False}
    dry = checkout.transect("retry", "results/failing", "--dry-run")
    assert dry.stdout.count("would delete") == 10
    before = checkout.pending(CONFIG)
    assert before == set()
    assert checkout.transect("retry", "results/failing").returncode == 0
    pending = {path for path in checkout.pending(CONFIG) if "/train/" in path}
    failing = {f"results/failing/train/{one['cell']}/record.json" for one in told["cells"]
               if one["status"] == "failed"}  # fmt: skip
    assert pending == failing


def test_strict_exits_non_zero_but_has_its_report(checkout):
    study = """
name: strict
plugins: [{plugins}]
workloads: {{iris-mlp-ce: {{epochs: 1}}}}
train: {{repeats: 1, grids: [{{workloads: [iris-mlp-ce], frameworks: [test-raises], strategies: [single]}}]}}
"""
    text = study.format(plugins=ROOT / "tests" / "plugins" / "failing")
    (checkout.folder / "strict.yaml").write_text(text)
    run = checkout.snakemake("--config", "study=strict.yaml", "strict=true")
    assert run.returncode != 0
    assert "test-raises" in run.stderr
    assert (checkout.folder / "results/strict/report.html").is_file()
    assert checkout.snakemake("--config", "study=strict.yaml").returncode == 0
