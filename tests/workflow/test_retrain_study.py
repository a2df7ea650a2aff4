"""A small study of retraining: real steps, real runners, one that is wrong, and a relay."""

from __future__ import annotations

import json

import numpy as np
import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

STUDY = """
name: again
plugins: [{plugins}]
retrain:
  checkpoint_every: 5
  rates: {{fast: {{factor: 5, warmup: 0.2, end: 0}}}}
  grids:
    - {{workloads: [iris-mlp-ce], base_epochs: [1], steps: [20], optimisers: [sgd, adamw], rates: [old, fast],
        runtimes: [python]}}
    - {{workloads: [iris-mlp-ce], base_epochs: [1], steps: [20],
        runtimes: [python-iobinding, test-wrong-rate, "python>python-iobinding>python>python-iobinding"]}}
    - {{workloads: [iris-mlp-ce], base_epochs: [0], steps: [10], accumulate: [2], clip: [0.5], batches: [8],
        runtimes: [python]}}
"""
FILE = "again.yaml"
RELAY = "python>python-iobinding>python>python-iobinding"


@pytest.fixture(scope="module")
def study(checkout):
    """A checkout with the study."""
    plugins = ROOT / "tests" / "plugins" / "retraining"
    (checkout.folder / FILE).write_text(STUDY.format(plugins=plugins))
    return checkout


@pytest.fixture(scope="module")
def records(study):
    """The records by runtime, optimiser, rate and base."""
    ran = study.python("-m", "transect", "run", FILE, "retrain", timeout=900)
    assert ran.returncode == 1, ran.stdout + ran.stderr  # one of them is wrong
    found = {}
    for record in study.records("again", "retrain").values():
        cell = record["cell"]
        key = cell["runtime"], cell["optimiser"], cell["rate"], cell["base_epochs"]
        found[key] = record
    return found


def values(record) -> dict[str, float]:
    return {one["name"]: one["value"] for one in record["metrics"]}


def loss(study, record) -> np.ndarray:
    folder = study.folder / "results" / "again" / "retrain" / record["cell_id"]
    with np.load(folder / "samples.npz") as file:
        return file["loss"]


def test_every_step_is_exported_and_follows_pytorch(study, records):
    steps = study.records("again", "step")
    assert len(steps) == 3 and {one["status"] for one in steps.values()} == {"ok"}
    for name in steps:
        folder = study.folder / "results" / "again" / name
        told = json.loads((folder / "step" / "workload.json").read_text())
        assert told["workload"] == "iris-mlp-ce" and told["optimiser"] in ("sgd", "adamw")
        facts = json.loads((folder / "facts.json").read_text())
        assert 0 < facts["base_scores"]["0"] < 1
        # A rate that is wrong by a hundredth would be seen a hundred times over.
        for problem in facts["problems"].values():
            assert problem["not_checkable_from"] is None and problem["detects_rate_error"] < 1e-4
        # Nothing in it may differ from run to run.
        assert facts.keys() == {"base_scores", "problems", "score", "tolerance_rule"}


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
@pytest.mark.parametrize("rate", ["old", "fast"])
def test_pythons_path_is_pytorchs(records, optimiser, rate):
    record = records["python", optimiser, rate, 1]
    assert record["status"] == "ok", record["message"]
    told = values(record)
    assert told["equality_ratio"] <= 1 and told["weights_equality_ratio"] <= 1
    assert told["step_time"] > 0 and told["checkpoint_time"] > 0 and told["peak_memory"] > 0
    assert 0 <= told["accuracy"] <= 1 and record["details"]["test_rows"] == 36


def test_a_rate_that_is_one_percent_off_is_a_wrong_result(records):
    record = records["test-wrong-rate", "sgd", "old", 1]
    assert (record["status"], record["cause"]) == ("failed", "wrong-result")
    assert "step_time" not in values(record)


def test_a_relay_computes_what_one_runtime_does(study, records):
    relay, alone = records[RELAY, "sgd", "old", 1], records["python", "sgd", "old", 1]
    assert relay["status"] == "ok", relay["message"]
    assert [one["end"] for one in relay["details"]["turns"]] == [5, 10, 15, 20]
    assert loss(study, relay) == pytest.approx(loss(study, alone), rel=1e-6)


def test_micro_batches_and_clipping_follow_pytorch_too(records):
    record = records["python", "sgd", "old", 0]
    assert record["status"] == "ok", record["message"]
    assert values(record)["equality_ratio"] <= 1


def test_nothing_runs_again_unless_something_changed(study, records):
    assert study.why(FILE) == {}
    path = study.folder / FILE
    before = path.read_text()
    path.write_text(before.replace("factor: 5", "factor: 6"))
    try:
        told = study.why(FILE)
    finally:
        path.write_text(before)
    # The steps pose the problem; what another rate asks for is asked of its own cells only.
    kinds = {name.split("~")[0]: {kind for kind, _ in reasons} for name, reasons in told.items()}
    assert "parameter" in kinds["retrain/iris-mlp-ce.python.cpu.e1.sgd.fast.s20.t1.b16.fp32"]
    assert kinds["retrain/iris-mlp-ce.python.cpu.e1.sgd.old.s20.t1.b16.fp32"] == {"input"}
    assert "retrain/iris-mlp-ce.python.cpu.e0.sgd.old.s10.c0.5.t1.b8.a2.fp32" not in kinds
