"""Pipelines as train cells: real ranks, held to the float64 reference step by step and at restarts."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import pytest
from rank_runs import Training, arrays

from transect.domain.cell import Cell
from transect.training.strategies import STRATEGIES, strategy_options

# Residual layers, batch norms and layers without weights, so small that ranks start longer than they train.
PLUGINS = """
from transect.training.layers import (
    BatchNorm2d, Conv2d, Flatten, GlobalAveragePool, Linear, MaxPool2d, ReLU, Residual,
)
from transect.training.workloads import WORKLOADS, Parameters, Workload

def block(channels):
    return Residual((Conv2d(channels, channels, 3, 1, bias=False), BatchNorm2d(channels), ReLU()))

@WORKLOADS.register("own-net")
class OwnNet(Workload):
    dataset, sample = "digits", (1, 8, 8)
    layers = (
        Conv2d(1, 4, 3, 1, bias=False), BatchNorm2d(4), ReLU(), MaxPool2d(2), block(4), block(4),
        GlobalAveragePool(), Linear(4, 8), ReLU(), Linear(8, 10),
    )
    defaults = Parameters(batch=24, epochs=1, learning_rate=0.05, quality_target=0.5)
"""
RULE = {"batch": 24, "epochs": 1, "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 1e-4, "test_fraction": 0.8}


# What numpy counts with weights of a training.
SCORE = """
import sys
from pathlib import Path
import numpy as np
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.inputs import load_data
from transect.training.workloads import WORKLOADS, model_of

workload, data = WORKLOADS.get("own-net"), load_data(Path("data"), 0)
with np.load(sys.argv[1]) as file:
    weights = {name: file[name] for name in file.files}
plan = ModelPlan(model=model_of(workload), parameters=workload.defaults, weights=weights, batch=1,
                 precision="fp64", device="cpu", threads=1)
outputs = FRAMEWORKS.get("numpy").trainer(plan).predict(data["x_test"])
print(plan.model.score_sum(outputs, data["y_test"]))
"""


class Trainings:
    """One workload, whose references are computed once for all frameworks."""

    def __init__(self, made: Training) -> None:
        self.made = made
        self._references: dict[str, Path] = {}

    def reference(self, **cuts: Any) -> Path:
        key = str(sorted(cuts.items()))
        if key not in self._references:
            self._references[key] = self.made.reference(precisions=("fp64",), **cuts)
        return self._references[key]


@pytest.fixture(scope="module")
def trainings(base_python: str, tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    folder = tmp_path_factory.mktemp("pipelines") / "own"
    made = Training(python=base_python, folder=folder, workload="own-net", plugins=PLUGINS, rule=RULE)
    made.prepare()
    return Trainings(made)


@pytest.mark.parametrize(
    ("ranks", "reduce", "options"),
    [
        (3, "mean", {"micro_batches": 5}),
        (4, "mean", {"stages": 2, "schedule": "gpipe", "cut": "7", "bucket_bytes": 100}),
        (4, "sum", {"stages": 2, "micro_batches": 5, "reduce": "end", "progress": "test"}),
    ],
)
@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_a_pipeline_follows_the_reference(trainings, framework, ranks, reduce, options, request):
    python = request.getfixturevalue("base_python" if framework == "numpy" else "torch_python")
    axes: dict[str, Any] = {"strategy": "mpi-pipeline", "precision": "fp64", "reduce": reduce, "framework": framework}
    axes["options"] = strategy_options("mpi-pipeline", options, "here")
    cell = Cell.of(stage="train", workload="digits-cnn", batch=24, ranks_per_node=ranks, **axes)
    layout = STRATEGIES.get("mpi-pipeline").layout(cell)
    # The workload is the test's own, whose batch norm makes cuts matter.
    cuts = {"shards": layout.replicas, "micro_batches": layout.micro_batches}
    cuts["reduce"] = reduce if layout.replicas > 1 else "mean"
    reference = trainings.reference(**cuts)
    made = copy(trainings.made)
    made.python = python
    out, log = made.train(ranks, reference=reference, **axes)
    assert sorted(arrays(out / "weights.npz")) == sorted(arrays(reference / "weights.npz")), log
    # Test samples went through all stages and were counted on rank 0.
    run = made.run([trainings.made.python, "-c", SCORE, out / "weights.npz"], made.folder)
    assert arrays(out / "rank-000.npz")["score_sum"].tolist() == [float(run.stdout)], run.stdout
    result = made.merge(out, reference)
    assert (result["status"], result["message"]) == ("ok", ""), result
    assert result["metrics"]["equality_ratio"] < 1 > result["metrics"]["restart_ratio"]
    assert 0 <= result["metrics"]["bubble"] < 1
    places = [(entry["replica"], entry["stage"]) for entry in result["details"]["ranks"]]
    assert places == [divmod(rank, layout.model_parts) for rank in range(ranks)]
    spans = [entry["layers"] for entry in result["details"]["ranks"][: layout.model_parts]]
    assert [spans[0][0], spans[-1][1]] == [0, 10]
