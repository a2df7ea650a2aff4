"""Every framework with every way to distribute it: two real ranks follow the float64 reference."""

from __future__ import annotations

import pytest

from framework_rows import EVERY, ON_ONE_MACHINE, SKIPPED

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def records(shared):
    """The training records by framework and strategy."""
    return {
        (record["cell"]["framework"], record["cell"]["strategy"]): record
        for record in shared.records("shared", "train").values()
        if record["cell"]["workload"] == "test-resnet8"
    }


def metrics(record):
    return {metric["name"]: metric["value"] for metric in record["metrics"]}


@pytest.mark.parametrize(
    ("framework", "strategy"),
    [pytest.param(*row, marks=() if row in ON_ONE_MACHINE else pytest.mark.exhaustive) for row in EVERY],
)
def test_row_follows_the_reference(records, framework, strategy):
    record = records[framework, strategy]
    assert record["status"] == "ok", f"{record['message']}\n{record['log_tail']}"
    found = metrics(record)
    # Loss at every step, and all weights with the running statistics of batch norm after the last.
    assert found["equality_ratio"] <= 1
    assert found["weights_equality_ratio"] <= 1
    assert record["details"]["reference_steps"] == 8
    # Handed weights, momentum and number of updates of the fourth step, it goes on as the reference.
    assert record["details"]["restarts_not_checkable"] is None
    (restart,) = record["details"]["restarts"]
    assert (restart["step"], restart["steps"], restart["sharp"]) == (4, 4, True)
    assert found["restart_ratio"] == restart["ratio"] <= 1
    assert found["startup_time"] > 0 and found["first_step_time"] > 0
    parts = [found.get(f"{part}_time") for part in ("compute", "communication", "input")]
    if None not in parts:
        assert sum(parts) <= found["step_time"] * 1.5
    assert found["cpu_utilisation"] > 0


@pytest.mark.parametrize("row", SKIPPED)
def test_what_cannot_run_here_says_why(records, row):
    record = records[row]
    assert record["status"] == "skipped" and record["cause"] == "unsupported"
    assert SKIPPED[row] in record["message"]


def test_ranks_cut_the_batch_of_a_reference_with_batch_norm(records):
    alone = records["torch", "single"]["details"]["reference"]
    two = records["torch", "ddp-gloo"]["details"]["reference"]
    assert ".s2" in two and alone != two
