"""The two published ways to train in parallel: sums without a mean, held to a reference that sums too."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from rank_runs import Training, arrays

from factories import train_cell
from transect.stages.reference import reference_of
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES
from transect.training.support import reason_to_skip
from transect.training.workloads import Parameters

RULE = {"batch": 12, "epochs": 2, "learning_rate": 0.02, "momentum": 0.0, "quality_target": 0.5}


summing = functools.partial(
    train_cell, workload="iris-mlp-ce", strategy="published-allreduce", ranks_per_node=3, reduce="sum", batch=12
)


@pytest.fixture(scope="module")
def training(base_python, tmp_path_factory) -> Training:
    made = Training(python=base_python, folder=tmp_path_factory.mktemp("published"), rule=RULE)
    made.prepare()
    return made


@pytest.mark.parametrize(("strategy", "ranks"), [("published-allreduce", 3), ("published-sendrecv", 4)])
def test_a_run_equals_a_reference_that_sums_and_its_record_says_so(training, strategy, ranks):
    # Both have three ranks that train: one path.
    reference = training.reference(reduce="sum", shards=3)
    out, _ = training.train(ranks=ranks, strategy=strategy, reduce="sum", reference=reference)
    losses = [arrays(out / f"rank-{rank:03d}.npz")["loss"] for rank in range(ranks)]
    assert [bool(np.isnan(loss).any()) for loss in losses] == [ranks == 4, *[False] * (ranks - 1)]
    found = training.merge(out, reference)
    assert (found["status"], found["message"]) == ("ok", "")
    details = found["details"]
    assert details["restarts_not_checkable"] is None and len(details["restarts"]) > 1
    assert details["effective_rate"] == {"factor": 3, "reason": "sum without a mean: effective rate x 3"}
    assert details["layout"]["servers"] == ranks - 3
    # The slowest rank that trains is the step: rank 0 of the second only waits.
    assert 0 < found["metrics"]["compute_time"] < found["metrics"]["step_time"]


def test_a_reference_that_averages_is_left(training):
    averaging = training.reference()
    out, _ = training.train(ranks=3, strategy="published-allreduce", reduce="sum")
    found = training.merge(out, averaging)
    assert found["cause"] == "wrong-result", found


def test_it_starts_from_rank_0_and_rank_0_of_send_and_receive_trains_nothing():
    cell = summing(strategy="published-sendrecv", ranks_per_node=4)
    layout = STRATEGIES.get("published-sendrecv").layout(cell)
    assert layout == Layout(3, servers=1) and layout.ranks == 4
    assert [layout.share(rank).number for rank in (1, 2, 3) if layout.share(rank)] == [0, 1, 2]
    assert layout.share(0) is None
    assert reference_of(cell).shards == 3
    assert reference_of(summing(ranks_per_node=4)).shards == 4


@pytest.mark.parametrize(
    ("axes", "rule", "reason"),
    [
        ({"reduce": "mean"}, {}, "`reduce: [sum]`"),
        ({}, {"momentum": 0.9}, "got sgd with 0.9 and 0"),
        ({}, {"optimiser": "adamw"}, "got adamw with 0 and 0"),
        ({"strategy": "published-sendrecv", "ranks_per_node": 1}, {}, "at least 2 ranks"),
        ({"strategy": "published-sendrecv", "workload": "images-resnet20"}, {}, "no batch"),
        ({"strategy": "published-sendrecv", "ranks_per_node": 6}, {}, "cannot be cut in 5 equal parts"),
    ],
)
def test_what_was_not_published_is_skipped_with_a_reason(axes, rule, reason):
    told = reason_to_skip(summing(**axes), Parameters(**RULE | rule))
    assert told is not None and reason in told
