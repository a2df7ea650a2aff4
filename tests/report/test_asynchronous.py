"""What a report says of gradients that are applied as they arrive; on records that change in the open."""

from __future__ import annotations

import pytest
from co_design_records import changed, measured
from said_of_records import Made, context, findings, only, prose

from transect.analysis.asynchronous import asynchronous_groups
from transect.analysis.comparisons import Confidence

TIMES = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06]
# What a training record has that is held to the reference.
CHECKED = ("equality_ratio", "weights_equality_ratio", "restart_ratio", "loss_deviation", "weights_deviation")


def repeats(times, *, staleness=None, ranks=2, over=False, accuracy=0.97):
    """Return runs of an asynchronous cell, or with no staleness of all-reduce."""
    [base, *_] = measured("train", strategy="mpi-allreduce", ranks_per_node=2)
    made = []
    for repeat, time in enumerate(times):
        details = {
            "over_subscribed": over,
            "quality": {"metric": "accuracy", "target": 0.95, "reached": time is not None},
        }
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
        drop = (CHECKED if staleness is not None else ()) + (("time_to_quality",) if time is None else ())
        record = record.model_copy(update={"metrics": [m for m in record.metrics if m.name not in drop]})
        made.append(record)
    return made


def times(factor):
    """Return an asynchronous cell that takes so many times as long as the synchronous one, and that one."""
    own = repeats([factor * one for one in TIMES], staleness=4, ranks=3, accuracy=0.94)
    return [*own, *repeats(TIMES)]


RANKS = [*repeats(TIMES, staleness="unbounded", ranks=3), *repeats(TIMES), *repeats(TIMES, ranks=3)]
LATE = [*repeats([None, *TIMES[1:]], staleness=4), *repeats(TIMES)]
CROWDED = [*repeats([one / 3 for one in TIMES], staleness=4, over=True), *repeats(TIMES)]


def test_prose(snapshot):
    sets = {
        "sooner": times(0.5),
        "later": times(2.0),
        "equal ranks and equal workers": RANKS,
        "one misses the target": LATE,
        "shared cores": CROWDED,
    }
    equality = {"beside a checked one": CROWDED, "alone": repeats(TIMES, staleness=4)}
    said = prose(sets, "asynchronous") | prose(equality, "equality")
    said["sections"] = [Made(key, *times(0.5)).prose for key in ("asynchronous", "equality")]
    assert said == snapshot


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_time_to_quality_stands_beside_the_synchronous_one(factor):
    made = context(*times(factor))
    [one] = asynchronous_groups(made.of("train"), made.floors)
    [twin] = one.twins
    assert (one.bound, one.workers, one.most) == ("4", 2, 5)
    assert twin.group.cell.strategy == "mpi-allreduce" and twin.group.cell.ranks == 2
    assert twin.time is not None and twin.time.shown
    assert twin.time.ratio.value == pytest.approx(factor)
    assert twin.time.ratio.low < factor < twin.time.ratio.high
    found = only("asynchronous", *times(factor))
    assert found.comparisons == twin.time.told
    # Seven runs a side would make any other claim confirmed.
    assert found.confidence is Confidence.PROVISIONAL


def test_its_steps_are_compared_with_nobodys():
    fast = [changed(one, {"step_time": 1e-9, "samples_per_second": 1e12}) for one in repeats(TIMES, staleness=4)]
    said = findings(*fast, *repeats(TIMES), *measured("train", strategy="single"))
    for kind, found in said.items():
        for one in found:
            assert one.confidence is not Confidence.CONFIRMED or "async" not in one.text, one.text
            if kind not in ("asynchronous", "fastest", "equality"):
                assert "async" not in one.text, one.text
