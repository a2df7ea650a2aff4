"""Failure is data: whatever a cell does, the study ends in a report that names it."""

from __future__ import annotations

import json

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

PLUGINS = ROOT / "tests" / "plugins" / "failing"
STUDY = """
name: failing
plugins: [{plugins}]
limits: {{memory_mb: 400}}
workloads: {{iris-mlp-ce: {{epochs: 3}}}}
train:
  repeats: 1
  grids:
    - workloads: [iris-mlp-ce]
      frameworks: [numpy, test-raises, test-killed, test-eats-memory, test-wrong,
                   test-needs-module, test-broken-environment, test-kills-its-runner,
                   test-truncates, test-supports-raises, test-quits]
      strategies: [single]
    - {{workloads: [iris-mlp-ce], frameworks: [numpy, test-killed, test-raises, test-truncates, test-quits],
       strategies: [mpi-allreduce], ranks: [2]}}
    - {{workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [ddp-gloo], ranks: [2]}}
"""
CAUSES = {
    "numpy.single.n1x1": None,
    "numpy.mpi-allreduce.n1x2": None,
    "numpy.ddp-gloo.n1x2": "unsupported",
    "test-raises.single.n1x1": "crash",
    "test-raises.mpi-allreduce.n1x2": "crash",
    "test-quits.single.n1x1": "crash",
    "test-quits.mpi-allreduce.n1x2": "crash",
    "test-killed.single.n1x1": "killed",
    "test-killed.mpi-allreduce.n1x2": "killed",
    "test-eats-memory.single.n1x1": "out-of-memory",
    "test-wrong.single.n1x1": "wrong-result",
    "test-needs-module.single.n1x1": "missing-dependency",
    "test-broken-environment.single.n1x1": "missing-dependency",
    "test-kills-its-runner.single.n1x1": "killed",
    "test-truncates.single.n1x1": "crash",
    "test-truncates.mpi-allreduce.n1x2": "crash",
    "test-supports-raises.single.n1x1": "crash",
}
SKIPPED = sum(cause == "unsupported" for cause in CAUSES.values())
FAILED = sum(cause not in (None, "unsupported") for cause in CAUSES.values())
FILE = "failing.yaml"


@pytest.fixture(scope="module")
def failed(place):
    """A folder in which the failing study has run once, and that run."""
    (place.folder / FILE).write_text(STUDY.format(plugins=PLUGINS))
    run = place.make(FILE)
    return place, run


def trained(place, study="failing", workload="iris-mlp-ce"):
    """Return the training records by framework, strategy and ranks."""
    return {
        record["cell_id"].removeprefix(f"{workload}.").split(".b16")[0]: record
        for record in place.records(study, "train").values()
    }


def test_each_cell_has_its_cause_and_the_study_ends_in_a_report(failed):
    place, run = failed
    assert run.returncode == 0, run.stderr
    found = trained(place)
    assert {name: record["cause"] for name, record in found.items()} == CAUSES
    html = (place.folder / "results/failing/report.html").read_text()
    summary = json.loads((place.folder / "results/failing/summary.json").read_text())
    # Data and reference came out well too.
    assert summary["counts"] == {"ok": 2 + 2, "failed": FAILED, "skipped": SKIPPED}
    assert all(record["cell_id"] in html for record in found.values() if record["cause"])
    assert "<script>alert" not in html
    assert place.payloads() == []
    for name, key, words in (
        ("test-killed.single.n1x1", "log_tail", "to be killed"),
        ("test-raises.single.n1x1", "log_tail", "Traceback"),
        ("test-quits.mpi-allreduce.n1x2", "message", "SystemExit: 0"),
        ("test-supports-raises.single.n1x1", "message", "ZeroDivisionError"),
        ("test-truncates.mpi-allreduce.n1x2", "message", "rank 0"),
    ):
        assert words in found[name][key], found[name][key]


def test_status_lists_and_reset_deletes_the_failed(failed):
    place, _ = failed
    status = json.loads(place.transect("status", "results/failing", "--json").stdout)
    assert status["counts"]["failed"] == FAILED
    assert status["others"] == {}
    assert {"test-killed.single" in cell["cell"] for cell in status["cells"]} == {True, False}
    dry = place.transect("reset", "results/failing", "--dry-run")
    assert dry.stdout.count("would delete train/") == FAILED
    assert "would delete environments/broken.json" in dry.stdout
    assert place.pending(FILE) == set()
    # One that a killed runner set aside would be put back, and held.
    lost = next(cell for cell in status["cells"] if cell["status"] == "failed")
    aside = place.folder / "results/failing/train" / lost["cell"] / "record.earlier.json"
    aside.write_bytes(aside.with_name("record.json").read_bytes())
    assert place.transect("reset", "results/failing").returncode == 0
    assert not aside.exists()
    failing = {f"train/{cell['cell']}" for cell in status["cells"] if cell["status"] == "failed"}
    assert set(place.why(FILE)) == failing
    assert place.stamps("failing", failing) < place.pending(FILE)


SERVED = """
name: served
plugins: [{plugins}]
limits: {{seconds: 300, memory_mb: 4000}}
workloads: {{iris-mlp-ce: {{epochs: 1}}}}
train:
  repeats: 1
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [torch], strategies: [single]}}
export: {{workloads: [iris-mlp-ce], exporters: [torchscript]}}
infer:
  max_seconds: 0.1
  grids: [{{workloads: [iris-mlp-ce], runtimes: [python, {runtimes}]}}]
"""
# Cause, and what the message says.
ENDS = {
    "test-fails-silently": ("crash", ""),
    "test-skips-silently": ("unsupported", ""),
    "test-unknown-cause": ("crash", ""),
    "test-half-a-record": ("bad-input", ""),
    "test-not-a-record": ("crash", "readable record"),
    "test-lies": ("bad-input", "ran on cuda"),
    "test-leaves": ("crash", "exit code 7"),
    "test-aborts": ("crash", "SIGABRT"),
    "test-leaks": ("out-of-memory", "4000 MB"),
}


def test_whatever_a_runner_says_becomes_the_record(place):
    (place.folder / "served.yaml").write_text(SERVED.format(plugins=PLUGINS, runtimes=", ".join(ENDS)))
    run = place.make("served.yaml", report=False)
    assert run.returncode == 0, run.stderr
    served = {record["cell"]["runtime"]: record for record in place.records("served", "infer").values()}
    assert served.pop("python")["status"] == "ok"
    assert {name: r["cause"] for name, r in served.items()} == {name: cause for name, (cause, _) in ENDS.items()}
    for name, (_, words) in ENDS.items():
        assert words in served[name]["message"] and served[name]["message"].strip(), served[name]["message"]
        assert served[name]["samples"] == {}


KILLERS = """
name: killers
plugins: [{plugins}]
workloads: {{iris-mlp-ce: {{epochs: 1, reference_steps: 0}}}}
train:
  repeats: {repeats}
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [{frameworks}], strategies: [single]}}
"""


def test_a_runner_that_dies_at_every_attempt_leaves_records_and_a_report(checkout):
    # One more than there are attempts.
    (checkout.folder / "killers.yaml").write_text(
        KILLERS.format(plugins=PLUGINS, repeats=8, frameworks="test-kills-its-runner")
    )
    run = checkout.snakemake("--config", "study=killers.yaml", "results=results/every")
    # The machine's fault, not a cell's.
    assert run.returncode != 0
    assert "no result" in run.stderr
    records = checkout.records("every/killers", "train")
    causes = sorted(record["cause"] for record in records.values())
    assert causes == ["crash", "crash", *["killed"] * 6]
    assert all(record["message"] for record in records.values())
    assert (checkout.folder / "results/every/killers/report.html").is_file()
    # Every cell has its record: the next call runs none.
    again = checkout.make("killers.yaml", report=False, results="results/every")
    assert again.returncode == 0, again.stderr
    after = checkout.records("every/killers", "train")
    assert {n: r["started"] for n, r in after.items()} == {n: r["started"] for n, r in records.items()}


def test_strict_exits_non_zero_but_has_its_report(place):
    text = KILLERS.replace("name: killers", "name: strict")
    text = text.format(plugins=PLUGINS, repeats=1, frameworks="numpy, test-raises")
    (place.folder / "strict.yaml").write_text(text)
    run = place.make("strict.yaml", strict="true")
    assert run.returncode != 0
    assert "test-raises" in run.stderr
    assert (place.folder / "results/strict/report.html").is_file()
    assert not (place.folder / "results/strict/strict.ok").exists()
    assert place.make("strict.yaml", report=False).returncode == 0
    # A study that no longer has the cell is not held to it.
    (place.folder / "strict.yaml").write_text(text.replace("numpy, test-raises", "numpy"))
    run = place.make("strict.yaml", strict="true")
    assert run.returncode == 0, run.stderr
    assert (place.folder / "results/strict/strict.ok").is_file()


def test_cells_that_the_study_no_longer_has_are_told_apart_and_removed(place):
    """After the test before: `strict` lost its failing cell."""
    folder = place.folder / "results/strict"
    (gone,) = folder.glob("train/*test-raises*")
    kept = {path for path in folder.glob("*/*/record.json") if gone not in path.parents}
    status = json.loads(place.transect("status", "results/strict", "--json").stdout)
    assert status["counts"] == {"ok": 2, "failed": 0, "skipped": 0}
    assert (status["others"], status["cells"]) == ({"earlier": 1}, [])
    done = place.transect("clean", "results/strict")
    assert done.returncode == 0 and f"removed train/{gone.name}" in done.stdout
    assert not gone.exists() and set(folder.glob("*/*/record.json")) == kept
