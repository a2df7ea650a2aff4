"""What a training takes from storage and leaves there: bytes by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from factories import train_cell
from transect.stages.train.result_storage import storage_facts
from transect.training.workloads import WORKLOADS, model_of


def test_bytes_are_those_of_the_stored_samples_and_of_weights_with_their_states(tmp_path: Path) -> None:
    workload = WORKLOADS.get("iris-mlp")
    model = model_of(workload)
    np.savez(
        tmp_path / "data.npz", x_train=np.zeros((120, 4)), y_train=np.zeros(120, np.int64), x_test=np.zeros((30, 4))
    )
    plain = workload.defaults.model_copy(update={"optimiser": "sgd", "momentum": 0.0, "ema": None})
    adam = plain.model_copy(update={"optimiser": "adamw"})
    weights = model.costs(plain).parameters
    found = storage_facts(tmp_path, train_cell(precision="fp32"), model, plain)
    assert found == {"state_bytes": 4 * weights, "epoch_bytes": 120 * 4 * 8}
    # Two moments beside each weight.
    assert storage_facts(tmp_path, train_cell(precision="fp64"), model, adam)["state_bytes"] == 3 * 8 * weights
    assert "epoch_bytes" not in storage_facts(tmp_path, train_cell(input="synthetic"), model, plain)
    assert "epoch_bytes" not in storage_facts(tmp_path / "gone", train_cell(), model, plain)
    np.save(tmp_path / "x_train.npy", np.zeros((120, 3), np.uint8))
    (tmp_path / "files.json").write_text(json.dumps({"train": [{"bytes": 7}, {"bytes": 5}]}))
    assert storage_facts(tmp_path, train_cell(input="files"), model, plain)["epoch_bytes"] == 12
    stored = storage_facts(tmp_path, train_cell(), model, plain)["epoch_bytes"]
    assert stored == (tmp_path / "x_train.npy").stat().st_size
