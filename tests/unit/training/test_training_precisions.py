"""Precisions stand in one table; one that nobody supports takes nothing with it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from payload_calls import payload_module
from transect.domain.errors import BadInput
from transect.domain.precisions import PRECISIONS, check_precisions, find_precision
from warm import warm

RULE = {"batch": 10, "epochs": 2, "learning_rate": 0.1, "quality_target": 0.5}
DATA = {
    "workload": "iris-mlp-ce",
    "seed": 1,
    "repeats": 1,
    "parameters": {"batch": 10, "epochs": 2, "test_fraction": 0.25, "dataset_options": {}},
}


@pytest.fixture(scope="module")
def data(base_python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "spec.json").write_text(json.dumps(DATA))
    made = warm(base_python).run(*payload_module("data", folder))
    assert made.returncode == 0, made.stderr
    return folder


def reference(python, data, folder, precisions, batch=10, shards=1):
    cell = {
        "stage": "reference",
        "workload": "iris-mlp-ce",
        "framework": "numpy",
        "strategy": "single",
        "precision": "fp64",
        "batch": batch,
        "shards": shards,
    }
    spec = {"cell": cell, "parameters": RULE, "precisions": precisions}
    (folder / "spec.json").write_text(json.dumps(spec))
    run = warm(python).run(*payload_module("reference", folder, data=data))
    assert run.returncode == 0, run.stdout + run.stderr
    with np.load(folder / "trajectory.npz") as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads((folder / "result.json").read_text()), arrays


def test_every_known_precision_has_a_tolerance_and_coarser_ones_a_larger(base_python, data, tmp_path):
    result, arrays = reference(base_python, data, tmp_path, sorted(PRECISIONS))
    assert result["status"] == "ok"
    last = {name: arrays[f"tolerance_{name}"][-1] for name in PRECISIONS}
    ordered = sorted(PRECISIONS, key=lambda name: PRECISIONS[name].unit_roundoff)
    assert [last[name] for name in ordered] == sorted(last.values())
    assert set(result["details"]["rules"]) == set(PRECISIONS)


def test_a_precision_that_the_reference_does_not_know_takes_no_other_with_it(base_python, data, tmp_path):
    result, arrays = reference(base_python, data, tmp_path, ["fp32", "fp7"])
    assert set(arrays) == {"loss", "tolerance_fp32"}
    assert set(result["details"]["weights_tolerance"]) == {"fp32"}


def test_an_unknown_precision_is_an_error_of_the_study():
    check_precisions(PRECISIONS, "a.yaml")
    with pytest.raises(BadInput, match=r"a\.yaml: train.*unknown precision 'fp7'.*amp-bf16, bf16"):
        check_precisions(["fp32", "fp7"], "a.yaml: train.grids.0.precisions")


@pytest.mark.parametrize(
    ("name", "roundoff", "size"),
    [
        ("fp64", np.finfo(np.float64).eps / 2, 8),
        ("fp32", np.finfo(np.float32).eps / 2, 4),
        ("fp16", np.finfo(np.float16).eps / 2, 2),
        ("bf16", 2.0**-8, 2),
        ("amp-bf16", 2.0**-8, 4),
    ],
)
def test_what_the_formats_are(name, roundoff, size):
    precision = find_precision(name)
    assert precision.unit_roundoff == float(roundoff)
    assert precision.bytes_per_number == size


def test_under_weak_scaling_the_longest_sum_is_over_the_cells_batch(base_python, data, tmp_path):
    """80 samples in one step sum 80 terms, on one rank or on more, not the workload's own 10."""
    for shards in (1, 4):
        result, _ = reference(base_python, data, tmp_path, ["fp32"], batch=80, shards=shards)
        assert result["details"]["longest_sum"] == 80
        assert "K = 80" in result["details"]["rules"]["fp32"]
