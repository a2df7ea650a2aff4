"""The trainers in Go follow the float64 reference: every layer, rule, loss and precision, restarts too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_cells import program_cell

from rank_runs import Training, arrays

# Every kind of layer, and what differs among convolutions and pools: padding, stride, bias, windows
# that overlap, an image that is not square at the end, residual layers with and without a shortcut.
WORKLOAD = """
from transect.training.layers import (
    BatchNorm2d, Conv2d, Flatten, GlobalAveragePool, Linear, MaxPool2d, ReLU, Residual, Sigmoid,
)
from transect.training.workloads import WORKLOADS, Parameters


@WORKLOADS.register("all-layers")
class AllLayers:
    dataset = "digits"
    sample = (1, 8, 8)
    layers = (
        Conv2d(1, 6, 3, padding=1, bias=False), BatchNorm2d(6), ReLU(),
        MaxPool2d(3, stride=2, padding=1),
        Residual((Conv2d(6, 6, 3, padding=1), ReLU(), Conv2d(6, 6, 1), BatchNorm2d(6))), ReLU(),
        Residual(
            (Conv2d(6, 8, 3, padding=1, stride=2), Sigmoid()),
            (Conv2d(6, 8, 1, stride=2, bias=False), BatchNorm2d(8)),
        ),
        ReLU(), Conv2d(8, 8, 5, padding=2), MaxPool2d(2, stride=1), GlobalAveragePool(),
        Linear(8, 12), Sigmoid(), Linear(12, 10),
    )
    defaults = Parameters(batch=30, epochs=1, learning_rate=0.1, quality_target=0.9)
"""
ALONE = {"strategy": "single", "repeat": 0}


def trained(folder: Path, python: str, workload: str, **rule: Any) -> tuple[Training, Path]:
    """Return a workload's data and its reference."""
    made = Training(python=python, folder=folder, workload=workload, rule=rule, plugins=WORKLOAD)
    made.prepare()
    return made, made.reference(precisions=("fp32", "fp64"), repeat=0)


@pytest.fixture(scope="module")
def layers(base_python, tmp_path_factory) -> tuple[Training, Path]:
    folder = tmp_path_factory.mktemp("go") / "layers"
    return trained(
        folder, base_python, "all-layers", batch=30, epochs=1, momentum=0.9, weight_decay=1e-3
    )


@pytest.mark.parametrize("framework", ["go", "go-openblas"])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_every_layer_follows_the_reference(layers, go_programs, framework, precision):
    training, reference = layers
    result = program_cell(
        training, reference, programs=go_programs, framework=framework, precision=precision,
        batch=30, threads=2, **ALONE,
    )  # fmt: skip
    assert (result["status"], result["message"]) == ("ok", "")
    assert result["metrics"]["equality_ratio"] <= 1
    # It goes on from the reference's states, and their check can tell.
    assert len(result["details"]["restarts"]) == 3
    assert result["details"]["restarts_not_checkable"] is None
    assert 0 < result["metrics"]["restart_ratio"] <= 1
    assert {"go", "blas"} <= set(result["libraries"])
    assert ("OpenBLAS" if framework == "go-openblas" else "gonum v0.17") in result["libraries"][
        "blas"
    ]
    if precision == "fp64":
        own, theirs = (arrays(Path(f) / "weights.npz") for f in (result["folder"], reference))
        assert max(float(np.abs(own[name] - theirs[name]).max()) for name in theirs) < 1e-12
    told = result["details"]["ranks"][0]["input"]
    assert told["preparing_s"] > 0 and told["hidden_s"] <= told["preparing_s"]
