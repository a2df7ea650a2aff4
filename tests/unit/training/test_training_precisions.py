"""Precisions stand in one table; one that nobody supports takes nothing with it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rank_runs import Training, arrays

from transect.domain.errors import BadInput
from transect.domain.precisions import PRECISIONS, check_precisions, find_precision


@pytest.fixture(scope="module")
def training(base_python, tmp_path_factory) -> Training:
    made = Training(python=base_python, folder=tmp_path_factory.mktemp("precisions"))
    made.prepare()
    return made


def test_every_known_precision_has_a_tolerance_and_coarser_ones_a_larger(training):
    out = training.reference([*sorted(PRECISIONS), "fp7"])
    paths = arrays(out / "trajectory.npz")
    last = {name: paths[f"tolerance_{name}"][-1] for name in PRECISIONS}
    ordered = sorted(PRECISIONS, key=lambda name: PRECISIONS[name].unit_roundoff)
    assert [last[name] for name in ordered] == sorted(last.values())
    # One that the reference does not know takes no other with it.
    details = json.loads((out / "result.json").read_text())["details"]
    assert set(details["rules"]) == set(details["weights_tolerance"]) == set(PRECISIONS)


def test_an_unknown_precision_is_an_error_of_the_study():
    check_precisions(PRECISIONS, "a.yaml")
    with pytest.raises(BadInput, match=r"a\.yaml: train.*unknown precision 'fp7'.*amp-bf16, bf16"):
        check_precisions(["fp32", "fp7"], "a.yaml: train.grids.0.precisions")


@pytest.mark.parametrize(("name", "kind"), [("fp64", np.float64), ("fp32", np.float32), ("fp16", np.float16)])
def test_what_the_formats_are(name, kind):
    found = find_precision(name)
    assert (found.unit_roundoff, found.bytes_per_number) == (float(np.finfo(kind).eps / 2), np.dtype(kind).itemsize)


def test_under_weak_scaling_the_longest_sum_is_over_the_cells_batch(training):
    """80 samples in one step sum 80 terms, on one rank or on more, not the workload's own 10."""
    for shards in (1, 4):
        details = json.loads((training.reference(batch=80, shards=shards) / "result.json").read_text())["details"]
        assert details["longest_sum"] == 80
        assert "K = 80" in details["rules"]["fp32"]
