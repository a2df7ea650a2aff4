"""What a report says of sums, messages and batches of several ranks, from made-up records."""

from __future__ import annotations

import pytest
from rank_records import rank_record, repeated
from said_of_records import Made, Sets, context, findings, prose

from transect.analysis.batch_sweeps import batch_sweeps
from transect.analysis.comparisons import Confidence
from transect.analysis.rank_costs import point_to_point, sum_paths
from transect.domain.record import Cause, Status

KINDS = ("near-linear", "rank-stop", "sum-rate", "point-to-point", "larger-batch")
WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "leaves at step 3"}


def triple(times: int, *, ends: tuple[float, float, float], ranks: int = 4, **axes):
    """Make a sum, the mean at the scaled rate, and the mean."""
    how = ({"reduce": "sum"} | axes, {"learning_rate_rule": "linear"}, {})
    return [
        rank_record(ranks=ranks, repeat=n, loss=loss, **axis)
        for n in range(times)
        for loss, axis in zip(ends, how, strict=True)
    ]


def idle():
    """Make a sum in which one of four ranks trains nothing, and both its twins."""
    means = [r for r in triple(6, ends=(0.2, 0.2, 0.4), ranks=3) if r.cell.reduce == "mean"]
    how = {"strategy": "published-sendrecv", "ranks": 4, "loss": 0.2}
    return [*means, *(rank_record(repeat=n, **how) for n in range(6))]


def networks():
    return [
        record
        for network in ("1gbit", "direct")
        for nodes in (2, 4)
        for strategy, waited in (("mpi-sendrecv", 1.2e-3), ("mpi-allreduce", 1e-4))
        for record in repeated(strategy=strategy, ranks=1, nodes=nodes, network=network, batch=8, waited=waited)
    ]


def sweep(*steps: float | None, cores: int = 4):
    return [
        record
        for batch, number in zip((8, 16, 32), steps, strict=False)
        for record in repeated(workload="iris-mlp-ce", batch=batch, steps_to_quality=number, cores=cores)
    ]


SETS = Sets(
    sum_is_rate=lambda: triple(6, ends=(0.2, 0.2 + 1e-9, 0.4)),
    sum_of_few_seeds=lambda: triple(3, ends=(0.2, 0.2 + 1e-9, 0.4)),
    sum_elsewhere=lambda: triple(6, ends=(0.4, 0.2, 0.4)),
    sum_between=lambda: triple(6, ends=(0.2, 0.21, 0.25)),
    sum_with_idle_rank=idle,
    messages=lambda: [*repeated(strategy="mpi-sendrecv", ranks=4, waited=1.2e-3), *repeated(ranks=4)],
    messages_crowded=lambda: [*repeated(strategy="mpi-sendrecv", ranks=8), *repeated(ranks=8)],
    messages_on_networks=networks,
    batches=lambda: sweep(400, 200, 160),
    batches_learn_slower=lambda: sweep(100, 200, 300),
    batches_alike=lambda: sweep(100, 100.1, 100.2),
    batches_that_miss=lambda: sweep(100, None, None),
    batches_crowded=lambda: sweep(400, 200, 160, cores=1),
)


def test_prose(snapshot):
    sections = {
        f"section of {name}": Made("ranks", *SETS[name]).prose for name in ("sum_is_rate", "messages", "batches")
    }
    assert prose(SETS, *KINDS) | sections == snapshot


@pytest.mark.parametrize(
    ("name", "confidence", "same", "other"),
    [
        ("sum_is_rate", Confidence.CONFIRMED, True, False),
        ("sum_of_few_seeds", Confidence.PROVISIONAL, True, False),
        ("sum_elsewhere", Confidence.PROVISIONAL, False, True),
        ("sum_between", Confidence.INCONCLUSIVE, False, False),
        # Three of four ranks train, and are held against three that do.
        ("sum_with_idle_rank", Confidence.CONFIRMED, True, False),
    ],
)
def test_a_sum_is_the_mean_at_as_many_times_the_rate_or_not(name, confidence, same, other):
    [path] = sum_paths(context(*SETS[name]).of("train"))
    assert SETS.only("sum-rate", name).confidence is confidence
    assert (path.same, path.other) == (same, other)
    assert path.factor == (3 if "idle" in name else 4)


def test_a_sum_s_distances_are_those_of_the_losses():
    [path] = sum_paths(context(*SETS["sum_is_rate"]).of("train"))
    assert path.to_scaled == pytest.approx([5e-9] * 6, rel=1e-3) and path.to_mean == (0.5,) * 6
    # A wrong sum proves nothing.
    bad = [one.model_copy(update=WRONG) if one.cell.reduce == "sum" else one for one in idle()]
    assert "sum-rate" not in findings(*bad)


def test_messages_from_rank_to_rank_stand_beside_the_collective():
    found = SETS.only("point-to-point", "messages")
    made = context(*SETS["messages"])
    [pair] = point_to_point(made.of("train"), made.floors)
    assert found.confidence is Confidence.CONFIRMED and found.comparisons == pair.result.told
    assert [one.cell for one in found.groups] == [pair.group.cell, pair.other.cell]
    ratio = pair.result.ratio
    assert ratio.value == pytest.approx(2, rel=1e-3) and ratio.low < ratio.value < ratio.high
    assert pair.published == pytest.approx(4 / 3, abs=0.01) and not pair.crowded


def test_a_larger_batch_saves_messages_only_where_it_learns_as_much_with_them():
    found = SETS.only("larger-batch", "batches")
    [told] = batch_sweeps((made := context(*SETS["batches"])).of("train"), made.floors)
    assert found.confidence is Confidence.CONFIRMED and found.comparisons == (told.comparison,)
    assert told.best.batch == 32 and 1 / told.comparison.factor == pytest.approx(0.4, rel=1e-3)
    # An epoch of 14, 7 and 3 steps that wait as long each.
    waited = [row.waited_s for row in told.rows]
    assert waited == pytest.approx([14 * 1.0025e-4, 7 * 1.0025e-4, 3 * 1.0025e-4])
