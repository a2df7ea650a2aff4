"""Torch's parallel strategies in a study: real cells, held to the float64 reference as any other."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]

STRATEGIES = ("torch-pipeline", "spatial", "tensor-parallel")


@pytest.fixture(scope="module")
def records(shared):
    """The training records by strategy and what tells them apart."""
    found = {}
    for record in shared.records("shared", "train").values():
        cell = record["cell"]
        if cell["strategy"] not in STRATEGIES or cell["batch"] == 32:
            continue
        schedule = dict(cell.get("options", [])).get("schedule", "1f1b")
        piped = cell["strategy"] == "torch-pipeline"
        found[cell["strategy"], schedule if piped else cell["workload"]] = record
    assert len(found) == 7
    return found


def metrics(record):
    return {one["name"]: one["value"] for one in record["metrics"]}


RUN = {
    ("torch-pipeline", "gpipe"): {"replicas": 1, "model_parts": 2, "micro_batches": 5},
    ("torch-pipeline", "zbv-zero-bubble"): {"replicas": 1, "model_parts": 2, "micro_batches": 3},
    ("torch-pipeline", "interleaved-1f1b"): {"replicas": 2, "model_parts": 2, "micro_batches": 2},
    ("spatial", "digits-cnn"): {"replicas": 1, "model_parts": 2, "micro_batches": 1},
    ("tensor-parallel", "digits-mlp"): {"replicas": 1, "model_parts": 2, "micro_batches": 1},
}


@pytest.mark.parametrize("key", RUN, ids=" ".join)
def test_a_cell_follows_the_reference(records, key):
    record = records[key]
    assert record["status"] == "ok", f"{record['message']}\n{record['log_tail']}"
    found, details = metrics(record), record["details"]
    # Loss at every step, and all weights with the running statistics of batch norm.
    assert found["equality_ratio"] <= 1 and found["weights_equality_ratio"] <= 1
    assert details["restarts_not_checkable"] is None and found["restart_ratio"] <= 1
    assert details["layout"] == RUN[key] | {"servers": 0}
    assert len(details["ranks"]) == record["cell"]["ranks_per_node"]
    parts = found["compute_time"] + found["communication_time"]
    assert parts <= found["step_time"] * 1.5 and found["communication_time"] > 0
    # Only stages of a pipeline wait for one another's results; the others have no bubble of 0.
    assert (found.get("bubble", 0) > 0) == ("bubble" in found) == (key[0] == "torch-pipeline")
    assert found["accuracy"] > 0


def test_stages_say_which_layers_they_are(records):
    ranks = records["torch-pipeline", "zbv-zero-bubble"]["details"]["ranks"]
    assert [one["stages"] for one in ranks] == [[0, 3], [1, 2]]
    spans = sorted(span for one in ranks for span in one["layers"])
    assert [a for a, _ in spans][1:] == [b for _, b in spans][:-1]


@pytest.mark.parametrize(
    ("key", "reason"),
    [(("torch-pipeline", "1f1b"), "2 stages, not 1"), (("tensor-parallel", "digits-cnn"), "no two linear layers")],
    ids=["pipeline", "tensor"],
)
def test_what_cannot_run_says_why(records, key, reason):
    record = records[key]
    assert record["status"] == "skipped" and record["cause"] == "unsupported"
    assert reason in record["message"]
