"""Ranks that share a model get the same part of each batch; the path stays the reference's."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rank_runs import Training, arrays

from transect.training.layout import Layout, Share

# Both ranks of a replica compute all of it: the simplest way to share a model. The mean over all
# ranks is the mean over replicas, as each counts twice.
PLUGINS = """
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES
from transect.training.strategies.mpi_allreduce import MpiAllreduce


@STRATEGIES.register("pairs")
class Pairs(MpiAllreduce):
    def layout(self, cell):
        return Layout(cell.ranks // 2, 2)


@STRATEGIES.register("miscounts")
class Miscounts(MpiAllreduce):
    def layout(self, cell):
        return Layout(cell.ranks, 2)
"""


@pytest.fixture(scope="module")
def training(base_python, tmp_path_factory) -> Training:
    folder = tmp_path_factory.mktemp("training")
    made = Training(python=base_python, folder=folder, plugins=PLUGINS, rule={"epochs": 1})
    made.prepare()
    return made


def test_batches_follow_the_replicas(training):
    out, _ = training.train(ranks=4, strategy="pairs")
    losses = [arrays(out / f"rank-{rank:03d}.npz")["loss"] for rank in range(4)]
    assert np.array_equal(losses[0], losses[1]) and np.array_equal(losses[2], losses[3])
    assert not np.array_equal(losses[0], losses[2])
    reference = arrays(training.reference() / "trajectory.npz")
    deviation = np.abs(np.mean(losses, axis=0) - reference["loss"])
    assert (deviation <= reference["tolerance_fp32"]).all()


def test_a_layout_of_another_number_of_ranks_is_refused(training):
    out, _ = training.train(ranks=2, strategy="miscounts", expect=1)
    errors = [json.loads(path.read_text())["message"] for path in out.glob("*.error.json")]
    assert "has 2 ranks, and miscounts lays out 4" in errors[0]


def test_who_computes_what():
    assert [Layout(3).share(rank) for rank in range(3)] == [Share(0, 3), Share(1, 3), Share(2, 3)]
    served = [Layout(2, servers=1).share(rank) for rank in range(3)]
    assert served == [None, Share(0, 2), Share(1, 2)]
    shares = [Layout(2, 3).share(rank) for rank in range(6)]
    assert shares == [Share(0, 2)] * 3 + [Share(1, 2)] * 3
