"""Retraining: real steps, real runners, one that is wrong, and a relay."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]

RELAY = "python>python-iobinding>python>python-iobinding"


@pytest.fixture(scope="module")
def records(shared):
    """The records by runtime, optimiser, rate and base."""
    found = {}
    for record in shared.records("shared", "retrain").values():
        cell = record["cell"]
        if cell["workload"] == "iris-mlp-ce":
            key = cell["runtime"], cell["optimiser"], cell["rate"], cell["base_epochs"]
            found[key] = record
    return found


def values(record) -> dict[str, float]:
    return {one["name"]: one["value"] for one in record["metrics"]}


def loss(shared, record) -> np.ndarray:
    folder = shared.folder / "results" / "shared" / "retrain" / record["cell_id"]
    with np.load(folder / "samples.npz") as file:
        return file["loss"]


def test_every_step_is_exported_and_follows_pytorch(shared, records):
    steps = {n: one for n, one in shared.records("shared", "step").items() if "/iris-mlp-ce" in n}
    assert len(steps) == 3 and {one["status"] for one in steps.values()} == {"ok"}
    for name in steps:
        folder = shared.folder / "results" / "shared" / name
        told = json.loads((folder / "step" / "workload.json").read_text())
        assert told["workload"] == "iris-mlp-ce" and told["optimiser"] in ("sgd", "adamw")
        facts = json.loads((folder / "facts.json").read_text())
        assert 0 < facts["base_scores"]["0"] < 1
        # A rate that is wrong by a hundredth would be seen a hundred times over.
        for problem in facts["problems"].values():
            assert problem["not_checkable_from"] is None and problem["detects_rate_error"] < 1e-4
        # Nothing in it may differ from run to run.
        assert facts.keys() == {"base_scores", "problems", "score", "tolerance_rule"}


# The last with micro-batches and clipping.
@pytest.mark.parametrize(
    "key", [("sgd", "old", 1), ("sgd", "fast", 1), ("adamw", "old", 1), ("adamw", "fast", 1), ("sgd", "old", 0)]
)
def test_pythons_path_is_pytorchs(records, key):
    record = records["python", *key]
    assert record["status"] == "ok", record["message"]
    told = values(record)
    assert told["equality_ratio"] <= 1 and told["weights_equality_ratio"] <= 1
    assert told["step_time"] > 0 and told["peak_memory"] > 0
    assert 0 <= told["accuracy"] <= 1


def test_a_rate_that_is_one_percent_off_is_a_wrong_result(records):
    record = records["test-wrong-rate", "sgd", "old", 1]
    assert (record["status"], record["cause"]) == ("failed", "wrong-result")
    assert "step_time" not in values(record)


def test_a_relay_computes_what_one_runtime_does(shared, records):
    relay, alone = records[RELAY, "sgd", "old", 1], records["python", "sgd", "old", 1]
    assert relay["status"] == "ok", relay["message"]
    assert [one["end"] for one in relay["details"]["turns"]] == [5, 10, 15, 20]
    assert loss(shared, relay) == pytest.approx(loss(shared, alone), rel=1e-6)
