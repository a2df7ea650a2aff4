"""The trainers in Go follow the float64 reference: every layer, rule, loss and precision, restarts too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from all_layers import ALONE, trained
from program_cells import program_cell

from rank_runs import Training, arrays


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
