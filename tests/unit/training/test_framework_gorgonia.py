"""The trainer on Gorgonia follows the float64 reference; what its Go tests show of the library holds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from all_layers import ALONE, trained
from program_cells import program_cell
from rank_runs import Training, arrays

from checkouts import ROOT

SOURCES = ROOT / "src" / "trainers" / "go-gorgonia"
# A residual net of the project's own, for images that a test can afford.
RESNET = """
from transect.training.layers import BatchNorm2d, Conv2d, GlobalAveragePool, Linear, ReLU
from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._resnet import _basic, _bottleneck, _preactivated


@WORKLOADS.register("small-resnet")
class SmallResnet(Workload):
    dataset = "digits"
    sample = (1, 8, 8)
    layers = (
        Conv2d(1, 4, 3, 1, bias=False), BatchNorm2d(4), ReLU(),
        _basic(4, 4, 1), ReLU(), _basic(4, 8, 2), ReLU(),
        _bottleneck(8, 4, 1), ReLU(), _preactivated(16, 4, 2), BatchNorm2d(16), ReLU(),
        GlobalAveragePool(), Linear(16, 10),
    )
    defaults = Parameters(batch=30, epochs=1, learning_rate=0.1, quality_target=0.9)
"""


@pytest.fixture(scope="module")
def trainings(base_python, tmp_path_factory) -> dict[str, tuple[Training, Path]]:
    folder = tmp_path_factory.mktemp("gorgonia")
    rules = {
        "all-layers": {"batch": 30, "momentum": 0.9, "weight_decay": 1e-3, "loss": "mse"},
        "small-resnet": {"batch": 30, "momentum": 0.9, "optimiser": "nesterov"},
        "digits-cnn": {"batch": 64, "momentum": 0.9, "optimiser": "adamw", "learning_rate": 0.01},
    }
    return {
        name: trained(folder / name, base_python, name, more=RESNET, epochs=1, **rule) for name, rule in rules.items()
    }


@pytest.mark.parametrize(
    ("workload", "precision"),
    [
        ("all-layers", "fp64"),
        ("all-layers", "fp32"),
        ("small-resnet", "fp64"),
        ("digits-cnn", "fp64"),
        ("digits-cnn", "fp32"),
    ],
)
def test_nets_follow_the_reference(trainings, gorgonia_programs, workload, precision):
    training, reference = trainings[workload]
    result = program_cell(
        training,
        reference,
        programs=gorgonia_programs,
        framework="go-gorgonia",
        precision=precision,
        batch=training.rule["batch"],
        threads=2,
        **ALONE,
    )
    assert (result["status"], result["message"]) == ("ok", "")
    assert result["metrics"]["equality_ratio"] <= 1
    # It goes on from the reference's states too, and their check can tell.
    assert len(result["details"]["restarts"]) >= 2
    assert result["details"]["restarts_not_checkable"] is None
    assert 0 < result["metrics"]["restart_ratio"] <= 1
    assert result["libraries"]["gorgonia.org/gorgonia"] == "v0.9.18"
    assert result["libraries"]["gorgonia.org/tensor"] == "v0.9.24"
    if precision == "fp64":
        own, theirs = (arrays(Path(f) / "weights.npz") for f in (result["folder"], reference))
        assert max(float(np.abs(own[name] - theirs[name]).max()) for name in theirs) < 1e-12


@pytest.mark.parametrize("strategy", ["mpi-allreduce", "mpi-overlap"])
def test_two_ranks_by_mpi_are_one_path(trainings, gorgonia_programs, strategy):
    training, _ = trainings["digits-cnn"]
    axes = {"strategy": strategy, "ranks_per_node": 2, "repeat": 0}
    reference = training.reference(precisions=("fp64",), ranks_per_node=2, repeat=0)
    # Of overlap: a message for each layer, as soon as the tape has computed its gradient.
    knobs = {"bucket_bytes": 0, "progress": "test", "reduce": "all", "wait": "sleep"}
    options = tuple(knobs.items()) if strategy == "mpi-overlap" else ()
    result = program_cell(
        training,
        reference,
        programs=gorgonia_programs,
        framework="go-gorgonia",
        precision="fp64",
        batch=64,
        options=options,
        **axes,
    )
    assert (result["status"], result["message"]) == ("ok", "")
    assert result["metrics"]["equality_ratio"] <= 1
    if options:
        assert result["details"]["ranks"][0]["messages"] == 3


@pytest.mark.env
@pytest.mark.skipif(shutil.which("go") is None, reason="no go on PATH: its tests need the toolchain")
def test_go_tests_of_gradients_and_of_gorgonias_faults_pass():
    run = subprocess.run(
        ["go", "test", "-mod=readonly", "-count=1", "-v", "./..."],
        cwd=SOURCES,
        text=True,
        capture_output=True,
        env=os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    passed = {line.split()[2] for line in run.stdout.splitlines() if line.startswith("--- PASS")}
    assert {"TestGradientsAgreeWithFiniteDifferences", "TestSumOverTwoAxesIsWrong"} <= passed
