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
    "test-quits.single.n1x1": "crash",
    "test-quits.mpi-allreduce.n1x2": "crash",
    "test-quits.mpi-allreduce.n1x3": "unsupported",
    "test-killed.single.n1x1": "killed",
    "test-killed.mpi-allreduce.n1x2": "killed",
    "test-killed.mpi-allreduce.n1x3": "unsupported",
    "test-eats-memory.single.n1x1": "out-of-memory",
    "test-wrong.single.n1x1": "wrong-result",
    "test-needs-module.single.n1x1": "missing-dependency",
    "test-broken-environment.single.n1x1": "missing-dependency",
    "test-kills-its-runner.single.n1x1": "killed",
    "test-truncates.single.n1x1": "crash",
    "test-truncates.mpi-allreduce.n1x2": "crash",
    "test-truncates.mpi-allreduce.n1x3": "unsupported",
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


def test_study_ends_in_a_report_and_exits_zero(failed):
    place, run = failed
    assert run.returncode == 0, run.stderr
    html = (place.folder / "results/failing/report.html").read_text()
    summary = json.loads((place.folder / "results/failing/summary.json").read_text())
    # Data and reference came out well too.
    assert summary["counts"] == {"ok": 2 + 2, "failed": FAILED, "skipped": SKIPPED}
    for record in trained(place).values():
        if record["cause"]:
            assert record["cell_id"] in html
    assert "<script>alert" not in html


def test_each_cell_has_its_cause(failed):
    place, _ = failed
    assert {name: one["cause"] for name, one in trained(place).items()} == CAUSES


def test_messages_and_log_tails_tell_what_happened(failed):
    place, _ = failed
    found = trained(place)
    assert "to be killed" in found["test-killed.single.n1x1"]["log_tail"]
    assert "Traceback" in found["test-raises.single.n1x1"]["log_tail"]
    assert "SystemExit: 0" in found["test-quits.single.n1x1"]["message"]
    assert "SystemExit: 0" in found["test-quits.mpi-allreduce.n1x2"]["message"]
    assert "ZeroDivisionError" in found["test-supports-raises.single.n1x1"]["message"]
    assert "rank 0" in found["test-truncates.single.n1x1"]["message"]
    assert "rank 0" in found["test-truncates.mpi-allreduce.n1x2"]["message"]


SLEEPING = """
name: sleeping
plugins: [{plugins}]
workloads: {{iris-mlp-ce: {{epochs: 3}}}}
train:
  repeats: 1
  grids: [{{workloads: [iris-mlp-ce], frameworks: [test-sleeps], strategies: [single]}}]
"""


def test_a_cell_that_sleeps_past_its_limit_is_ended(place):
    path, text = place.folder / "sleeping.yaml", SLEEPING.format(plugins=PLUGINS)
    path.write_text(text)
    assert place.transect("run", path.name, "reference").returncode == 0
    # Its data and its reference hold while they took less.
    path.write_text(text + "limits: {seconds: 60}\n")
    assert place.make("sleeping.yaml", report=False).returncode == 0
    (record,) = trained(place, "sleeping").values()
    assert record["cause"] == "timeout", record["message"]
    assert "sleeping past" in record["log_tail"]


def test_no_process_is_left(failed):
    place, _ = failed
    assert place.payloads() == []


def test_a_plugin_that_raises_is_a_line_of_check_too(failed):
    place, _ = failed
    told = place.transect("check", FILE, "--json")
    assert told.returncode == 0, told.stderr
    reasons = {row["cell"].split(".b16")[0]: row["skip"] for row in json.loads(told.stdout)["cells"]}
    assert "ZeroDivisionError" in reasons["iris-mlp-ce.test-supports-raises.single.n1x1"]
    assert reasons["iris-mlp-ce.test-raises.single.n1x1"] is None


def test_status_lists_and_reset_deletes_the_failed(failed):
    place, _ = failed
    told = json.loads(place.transect("status", "results/failing", "--json").stdout)
    assert told["counts"]["failed"] == FAILED
    assert told["others"] == {}
    assert {"test-killed.single" in one["cell"] for one in told["cells"]} == {True, False}
    dry = place.transect("reset", "results/failing", "--dry-run")
    assert dry.stdout.count("would delete train/") == FAILED
    assert "would delete environments/broken.json" in dry.stdout
    assert place.pending(FILE) == set()
    # One that a killed runner set aside would be put back, and held.
    lost = next(one for one in told["cells"] if one["status"] == "failed")
    aside = place.folder / "results/failing/train" / lost["cell"] / "record.earlier.json"
    aside.write_bytes(aside.with_name("record.json").read_bytes())
    assert place.transect("reset", "results/failing").returncode == 0
    assert not aside.exists()
    failing = {f"train/{one['cell']}" for one in told["cells"] if one["status"] == "failed"}
    assert set(place.why(FILE)) == failing
    assert place.stamps("failing", failing) < place.pending(FILE)


SERVED = """
name: served
plugins: [{plugins}]
workloads: {{iris-mlp-ce: {{epochs: 1}}}}
train:
  repeats: 1
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [torch], strategies: [single]}}
export: {{workloads: [iris-mlp-ce], exporters: [torchscript]}}
infer:
  max_seconds: 0.1
  grids:
    - workloads: [iris-mlp-ce]
      runtimes: [python, test-fails-silently, test-skips-silently, test-unknown-cause,
                 test-half-a-record, test-not-a-record]
"""
RUNTIME_CAUSES = {
    "python": None,
    "test-fails-silently": "crash",
    "test-skips-silently": "unsupported",
    "test-unknown-cause": "crash",
    # It says that all went well, and left no outputs.
    "test-half-a-record": "bad-input",
    "test-not-a-record": "crash",
}


def test_whatever_a_runner_says_becomes_the_record(place):
    (place.folder / "served.yaml").write_text(SERVED.format(plugins=PLUGINS))
    run = place.make("served.yaml")
    assert run.returncode == 0, run.stderr
    records = place.records("served")
    served = {r["cell"]["runtime"]: r for r in records.values() if r["stage"] == "infer"}
    assert {name: one["cause"] for name, one in served.items()} == RUNTIME_CAUSES
    for name, one in served.items():
        assert bool(one["message"].strip()) == (name != "python")
    html = (place.folder / "results/served/report.html").read_text()
    assert all(one["cell_id"] in html for one in served.values() if one["cause"])


KILLERS = """
name: killers
plugins: [{plugins}]
workloads: {{iris-mlp-ce: {{epochs: 1, reference_steps: 0}}}}
train:
  repeats: {repeats}
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [{frameworks}], strategies: [single]}}
"""


def test_a_killed_runner_costs_the_cell_that_ran_and_no_other(place):
    (place.folder / "killers.yaml").write_text(
        KILLERS.format(plugins=PLUGINS, repeats=2, frameworks="numpy, test-kills-its-runner")
    )
    run = place.make("killers.yaml", report=False, results="results/one")
    assert run.returncode == 0, run.stderr
    found = trained(place, "one/killers")
    causes: dict[str | None, list[str | None]] = {}
    for one in place.records("one/killers").values():
        causes.setdefault(one["cell"].get("framework"), []).append(one["cause"])
    assert causes == {None: [None], "numpy": [None, None], "test-kills-its-runner": ["killed", "killed"]}
    assert all("runner" in one["message"] for one in found.values() if one["cause"])


def test_a_runner_that_dies_at_every_attempt_leaves_records_and_a_report(checkout):
    place = checkout
    # One more than there are attempts.
    (place.folder / "killers.yaml").write_text(
        KILLERS.format(plugins=PLUGINS, repeats=8, frameworks="test-kills-its-runner")
    )
    run = checkout.snakemake("--config", "study=killers.yaml", "results=results/every")
    # The machine's fault, not a cell's.
    assert run.returncode != 0
    assert "no result" in run.stderr
    records = place.records("every/killers", "train")
    causes = sorted(one["cause"] for one in records.values())
    assert causes == ["crash", "crash", *["killed"] * 6]
    assert all(one["message"] for one in records.values())
    assert (place.folder / "results/every/killers/report.html").is_file()
    # Every cell has its record: the next call runs none.
    again = place.make("killers.yaml", report=False, results="results/every")
    assert again.returncode == 0, again.stderr
    after = place.records("every/killers", "train")
    assert {n: r["started"] for n, r in after.items()} == {n: r["started"] for n, r in records.items()}


def test_strict_exits_non_zero_but_has_its_report(checkout):
    text = KILLERS.replace("name: killers", "name: strict")
    text = text.format(plugins=PLUGINS, repeats=1, frameworks="numpy, test-raises")
    (checkout.folder / "strict.yaml").write_text(text)
    run = checkout.snakemake("--config", "study=strict.yaml", "strict=true")
    assert run.returncode != 0
    assert "test-raises" in run.stderr
    assert (checkout.folder / "results/strict/report.html").is_file()
    assert checkout.make("strict.yaml", report=False).returncode == 0
    # A study that no longer has the cell is not held to it.
    (checkout.folder / "strict.yaml").write_text(text.replace("numpy, test-raises", "numpy"))
    run = checkout.make("strict.yaml", strict="true")
    assert run.returncode == 0, run.stderr
    assert (checkout.folder / "results/strict/strict.ok").is_file()


def test_cells_that_the_study_no_longer_has_are_told_apart_and_removed(checkout):
    """After the test before: `strict` lost its failing cell."""
    folder = checkout.folder / "results/strict"
    (gone,) = folder.glob("train/*test-raises*")
    kept = {path for path in folder.glob("*/*/record.json") if gone not in path.parents}
    told = json.loads(checkout.transect("status", "results/strict", "--json").stdout)
    assert told["counts"] == {"ok": 2, "failed": 0, "skipped": 0}
    assert (told["others"], told["cells"]) == ({"earlier": 1}, [])
    assert "1 earlier" in checkout.transect("status", "results/strict").stdout
    dry = checkout.transect("clean", "results/strict", "--dry-run")
    assert dry.stdout.splitlines() == [f"would remove train/{gone.name}", "1 cells that the study no longer has"]
    assert gone.is_dir()
    done = checkout.transect("clean", "results/strict")
    assert done.returncode == 0 and f"removed train/{gone.name}" in done.stdout
    assert not gone.exists()
    assert set(folder.glob("*/*/record.json")) == kept
    assert "0 cells" in checkout.transect("clean", "results/strict").stdout
    told = json.loads(checkout.transect("status", "results/strict", "--json").stdout)
    assert told["others"] == {}
