"""What a report says of gradients that are applied as they arrive; on records that change in the open."""

from __future__ import annotations

import pytest
from co_design_records import changed, measured
from said_of_records import Made, findings, only

from transect.analysis.comparisons import Sureness

TIMES = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06]
# What a training record has that is held to the reference.
CHECKED = ("equality_ratio", "weights_equality_ratio", "restart_ratio", "loss_deviation", "weights_deviation")  # fmt: skip


def repeats(times, *, staleness=None, ranks=2, over=False, accuracy=0.97):
    """Return runs of an asynchronous cell, or with no staleness of all-reduce."""
    [base, *_] = measured("train", strategy="mpi-allreduce", ranks_per_node=2)
    made = []
    for repeat, time in enumerate(times):
        details = {"over_subscribed": over, "quality": {"metric": "accuracy", "target": 0.95, "reached": time is not None}}  # fmt: skip
        axes = {"repeat": repeat, "ranks_per_node": ranks}
        values = {"accuracy": accuracy} | ({"time_to_quality": time} if time is not None else {})
        if staleness is not None:
            bound = None if staleness == "unbounded" else staleness
            axes |= {"strategy": "async", "options": (("staleness", staleness),)}
            details |= {
                "not_checkable": "asynchronous: who is faster decides",
                "updates": {"workers": ranks - 1, "staleness_bound": bound, "largest_staleness": 5},
            }
            values |= {"staleness": 1.0, "staleness_p95": 3.0}
        record = changed(base, values, details=details, axes=axes)
        drop = (CHECKED if staleness is not None else ()) + (("time_to_quality",) if time is None else ())  # fmt: skip
        record = record.model_copy(update={"metrics": [m for m in record.metrics if m.name not in drop]})  # fmt: skip
        made.append(record)
    return made


@pytest.mark.parametrize(("times", "said"), [(0.5, ": sooner;"), (2.0, ": later, so waiting for nobody does not pay here;")])  # fmt: skip
def test_the_time_to_quality_stands_beside_the_synchronous_one(times, said):
    own = repeats([times * one for one in TIMES], staleness=4, ranks=3, accuracy=0.94)
    found = only("asynchronous", *own, *repeats(TIMES))
    assert f"async (staleness 4) reaches accuracy 0.95 in {times:g} times (95 % interval " in found.text  # fmt: skip
    assert "the time of mpi-allreduce on as many ranks as it has workers" in found.text
    assert said in found.text
    assert "stale by median 1, 95th percentile 3, most 5 updates" in found.text
    assert "it ends at accuracy 0.94, the other at 0.97" in found.text
    # Seven runs a side would make any other claim firm.
    assert found.sureness is Sureness.TENTATIVE


def test_equal_ranks_come_before_equal_workers():
    own = repeats(TIMES, staleness="unbounded", ranks=3)
    found = findings(*own, *repeats(TIMES), *repeats(TIMES, ranks=3))["asynchronous"]
    assert ["as many ranks;" in one.text for one in found] == [True, False]
    assert all("async (staleness unbounded)" in one.text for one in found)


def test_who_does_not_reach_the_target_is_named():
    found = only("asynchronous", *repeats([None, *TIMES[1:]], staleness=4), *repeats(TIMES))
    assert (
        "async (staleness 4) does not reach accuracy 0.95 in every run, mpi-allreduce" in found.text
    )
    assert found.sureness is not Sureness.FIRM


def test_ranks_that_share_cores_decide_nothing():
    own = repeats([one / 3 for one in TIMES], staleness=4, over=True)
    assert only("asynchronous", *own, *repeats(TIMES)).sureness is Sureness.OPEN


def test_its_steps_are_compared_with_nobodys():
    fast = [changed(one, {"step_time": 1e-9, "samples_per_second": 1e12})
            for one in repeats(TIMES, staleness=4)]  # fmt: skip
    said = findings(*fast, *repeats(TIMES), *measured("train", strategy="single"))
    for kind, found in said.items():
        for one in found:
            assert one.sureness is not Sureness.FIRM or "async" not in one.text, one.text
            if kind not in ("asynchronous", "fastest", "equality"):
                assert "async" not in one.text, one.text


def test_equality_says_what_cannot_be_checked():
    found = only("equality", *repeats(TIMES, staleness=4), *repeats(TIMES))
    assert "7 runs not checkable: asynchronous" in found.evidence
    alone = only("equality", *repeats(TIMES, staleness=4))
    assert "no training run can be held to the reference" in alone.claim
    assert alone.sureness is Sureness.OPEN
    [row] = Made("equality", *repeats(TIMES, staleness=4), *repeats(TIMES)).table("Not held")
    assert row["Equality"] == "not checkable: asynchronous" and row["Runs"] == "7"


def test_the_section_lists_bound_staleness_and_verdict():
    made = Made("asynchronous", *repeats([one / 2 for one in TIMES], staleness=4), *repeats(TIMES))
    [row] = made.table("Asynchronous updates")
    assert (row["Bound"], row["Workers"], row["Most"]) == ("4", "1", "5")
    [row] = made.table("Beside")
    assert row["Verdict"] == "sooner" and row["Beside"].startswith("mpi-allreduce")


def test_without_such_a_cell_there_is_no_section():
    assert "asynchronous" not in findings(*repeats(TIMES))
