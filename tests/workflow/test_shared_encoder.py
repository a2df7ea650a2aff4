"""The encoder of tickets through the stages that know no tickets: from its data to its retraining."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def records(shared) -> dict:
    """The records of the encoder by stage and id."""
    found = {}
    for stage in ("encode", "data", "train", "export", "infer", "step", "retrain"):
        own = "sample" if stage == "encode" else "test-encoder"
        found[stage] = {
            one["cell_id"]: one for one in shared.records("shared", stage).values() if one["cell_id"].startswith(own)
        }
    return found


def values(record: dict) -> dict[str, float]:
    return {one["name"]: one["value"] for one in record["metrics"]}


def test_its_data_is_made_of_encoded_tickets(records):
    (data,), (encoded,) = records["data"].values(), records["encode"].values()
    assert data["details"]["dataset"] == "tickets"
    assert data["details"]["train"] == encoded["details"]["sizes"]["train"]
    assert data["details"]["classes"] == encoded["details"]["classes"]
    # What it took is named, with its content.
    taken = " ".join(data["inputs"])
    assert encoded["files"]["x_train.npy"] in taken


def test_every_strategy_follows_the_float64_path(records):
    cells = {(one["cell"]["framework"], one["cell"]["strategy"]): one for one in records["train"].values()}
    assert len(cells) == 3
    for record in cells.values():
        assert record["status"] == "ok", record["message"]
        found = values(record)
        assert 0 < found["equality_ratio"] < 1 and found["weights_equality_ratio"] < 1


def test_a_runtime_of_layers_says_that_it_is_none(records):
    states = {one["cell"]["runtime"]: (one["status"], one["message"]) for one in records["infer"].values()}
    assert states["python"][0] == states["torch-eager"][0] == "ok"
    assert states["tensorflow"][0] == "skipped" and "TextEncoder" in states["tensorflow"][1]


def test_costs_come_from_the_model_where_there_is_no_graph(records):
    of = {one["cell"]["runtime"]: one["details"] for one in records["infer"].values()}
    assert (of["python"]["costs_from"], of["torch-eager"]["costs_from"]) == ("ONNX graph", "model")
    assert of["python"]["operators_without_rule"] == []
    ratio = of["python"]["flops_per_run"] / of["torch-eager"]["flops_per_run"]
    assert 0.8 < ratio < 1.25


def test_its_step_is_portable_and_retrained(records):
    (step,) = records["step"].values()
    assert step["status"] == "ok", step["message"]
    assert len(records["retrain"]) == 2
    for record in records["retrain"].values():
        assert record["status"] == "ok", record["message"]
        assert values(record)["weights_equality_ratio"] < 1
