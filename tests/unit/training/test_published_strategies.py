"""The two published ways to train in parallel: sums without a mean, held to a reference that sums too."""

from __future__ import annotations

import numpy as np
import pytest
from rank_runs import Training, arrays

RULE = {"batch": 12, "epochs": 2, "learning_rate": 0.02, "momentum": 0.0, "quality_target": 0.5}


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
