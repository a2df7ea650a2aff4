"""What a report says of ranks beside published minutes, of sums, messages and batches, from made-up records."""

from __future__ import annotations

import pytest
from rank_records import data_record, probe, rank_record, repeated, scaling, write_rank_study
from said_of_records import Made, context, findings, only

from transect.analysis.amdahl import serial_part
from transect.analysis.comparisons import Sureness
from transect.analysis.published_series import PUBLISHED
from transect.analysis.rank_costs import published_ratio
from transect.analysis.rank_series import problems
from transect.domain.record import Cause, Status
from transect.report.build import build_report

KINDS = {"near-linear", "rank-stop", "sum-rate", "point-to-point", "larger-batch"}
WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "leaves at step 3"}


def series(*records):
    made = context(*records)
    [problem] = problems(made.of("train"), made.network_fits)
    return problem


@pytest.mark.parametrize(("share", "ranks"), [(0.0, (1, 2, 4)), (0.2, (1, 2, 3)), (0.9, (1, 8))])
def test_the_serial_part_of_exact_times_is_found_exactly(share, ranks):
    points = [(p, share + (1 - share) / p) for p in ranks for _ in range(2)]
    found = serial_part(points)
    assert found.share == pytest.approx(share, abs=1e-9)
    assert found.low == pytest.approx(share, abs=1e-6) == found.high
    assert found.ranks == ranks


def test_the_interval_of_the_serial_part_holds_it_as_often_as_it_says():
    import numpy as np

    draw, held, told = np.random.default_rng(5), 0, 0
    for _ in range(400):
        points = [
            (p, (0.3 + 0.7 / p) * (1 + draw.normal(0, 0.04))) for p in (1, 2, 4) for _ in "ab"
        ]
        found = serial_part(points)
        told += found.share is not None
        held += found.share is not None and found.low <= 0.3 <= found.high
    assert told > 380 and 0.92 <= held / told <= 0.98


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([], "nothing was measured"),
        ([(1, 1.0), (2, 1.2), (4, 1.3)], "no larger number of ranks is faster"),
        ([(1, 1.0), (2, 0.6)], "two runs fit any share"),
        ([(1, 1.0), (1, 0.2), (2, 0.9), (2, 0.1)], "scatter too much for any share"),
        ([(1, 1.0), (1, 0.9), (2, 0.85), (2, 0.6)], "its interval reaches"),
        ([(1, 1.0), (1, 1.01), (2, 0.45), (2, 0.46), (4, 0.2)], "gain more than their number"),
    ],
)
def test_what_the_times_cannot_tell_is_not_told(points, reason):
    found = serial_part(points)
    assert found.share is None and reason in found.reason
    assert (found.low, found.high) == (0.0, 1.0)


def test_times_beyond_the_fastest_take_no_part_in_the_law():
    points = [(p, 0.5 + 0.5 / p) for p in (1, 2, 4)]
    assert serial_part([*points, (8, 2.0)]) == serial_part(points)


def test_the_published_numbers_are_those_of_the_source():
    iris, iris_messages, images, image_messages = PUBLISHED
    assert [one.first for one in PUBLISHED] == [1, 2, 7, 7]
    assert images.minutes[7] / images.minutes[30] == pytest.approx(2.05, abs=0.005)
    assert list(images.minutes) == list(image_messages.minutes) and len(iris.minutes) == 8
    assert published_ratio("images-mlp", 30) == pytest.approx(140 / 44)
    assert published_ratio("iris-mlp", 1) is None and published_ratio("digits-cnn", 8) is None
    assert iris_messages.idle == 1 == image_messages.idle


def test_without_ranks_there_is_no_section_and_no_finding():
    records = repeated(strategy="single", ranks=1, workload="digits-cnn", batch=64)
    assert not KINDS & findings(*records).keys()
    with pytest.raises(AssertionError):
        Made("ranks", *records)


def test_a_series_begins_with_one_rank_and_stays_within_its_cores():
    problem = series(*scaling((1, 2, 4, 8)), probe())
    [one] = problem.measured
    assert [point.ranks for point in one.points] == [1, 2, 4, 8]
    assert [point.hollow for point in one.points] == [False, False, False, True]
    # t(p) of a sample is 0.2 + 0.8 / p of one rank's: on 4 ranks 0.4, the last within the cores.
    assert (one.stop.base, one.stop.fastest) == (1, 4)
    assert one.stop.speed_up == pytest.approx(2.5, rel=0.01)
    assert one.stop.efficiency == pytest.approx(0.625, rel=0.01)
    assert one.serial.share == pytest.approx(0.2, abs=0.01)
    assert "from 8 ranks on they share cores" in one.stop.reason
    assert "bound of an all-reduce" in one.stop.reason
    first, second = problem.published
    assert (first.stop.fastest, second.stop.base) == (6, 2)
    assert first.stop.speed_up == pytest.approx(1.4 / 0.79)


def test_other_batches_of_a_rank_are_no_part_of_what_was_published():
    with pytest.raises(ValueError, match="not enough values"):
        series(*repeated(ranks=2, batch=16), *repeated(ranks=4, batch=16))


def test_near_linear_is_held_against_its_own_minutes():
    found = only("near-linear", *scaling((1, 2, 4)), probe())
    assert found.sureness is Sureness.FIRM and found.subject == "claims"
    assert (
        "Allreduce from 1 to 6 ranks 1.77 times as fast where 6 would be linear (30 %)"
        in found.text
    )
    assert "here numpy · mpi-allreduce is 2.5 times as fast on 4 ranks as on 1 (62 %)" in found.text
    assert "Amdahl's law: Allreduce 52 % (95 % interval 38 % to 71 %)" in found.evidence
    images = only("near-linear", *scaling((1, 7, 30), workload="images-mlp"))
    assert "from 7 to 30 ranks 2.05 times as fast where 4.29 would be linear (48 %)" in images.text
    assert "shares cores, so nothing is claimed of it" in images.text


def test_where_no_ranks_are_faster_near_linear_says_so():
    slower = [*repeated(strategy="single", ranks=1), *repeated(ranks=2, waited=9e-3)]
    found = only("near-linear", *slower)
    assert found.text.endswith(
        "; here no number of ranks within the cores is faster than the first."
    )
    stop = only("rank-stop", *slower)
    assert stop.sureness is Sureness.OPEN and "no larger number of ranks is faster" in stop.evidence
    assert (
        "on no number of ranks faster than on 1: 2 ranks wait for messages in 90 % of" in stop.text
    )


def test_a_speed_up_that_may_be_noise_is_none():
    # Alike but for noise: the median of two ranks is less by a thousandth.
    flat = [
        record
        for ranks, shift in ((1, 0.001), (2, 0.0))
        for record in repeated(
            strategy="single" if ranks == 1 else "mpi-allreduce", ranks=ranks, spread=0.004,
            computing=ranks * 1e-3 * (1 + shift), waited=0.0,
        )
    ]  # fmt: skip
    [one] = series(*flat).measured
    assert one.stop.fastest == 2 and one.serial.high == 1.0 and not one.stop.faster
    stop = only("rank-stop", *flat)
    assert stop.sureness is Sureness.OPEN and "so this may be noise" in stop.text
    assert "too far apart for any number of ranks to be faster" in only("near-linear", *flat).text


def test_where_it_stops_is_firm_within_the_cores_and_open_past_them():
    found = only("rank-stop", *scaling((1, 2, 4, 8)), probe())
    assert found.sureness is Sureness.FIRM
    assert "serial part within the cores: 20 % (95 % interval" in found.evidence
    crowded = only("rank-stop", *scaling((1, 8)), probe())
    assert crowded.sureness is Sureness.OPEN and "more cores would tell" in crowded.text
    without = only("rank-stop", *scaling((1, 2, 4, 8)))
    assert "without a network probe nothing says" in without.text


def test_the_chart_has_published_and_measured_lines_each_scaled_to_itself():
    made = Made("ranks", *scaling((1, 7, 16, 30), workload="images-mlp"), data_record(), probe())
    rows = [dict(zip([c.title for c in t.columns], row, strict=True))
            for t in [made.chart("Time for the same samples").table] for row in t.rows]  # fmt: skip
    at = {(str(row["Series"]), str(row["Ranks"])): row for row in rows}
    assert at["published, Allreduce", "7"]["Times that"] == "1.000"
    assert at["published, Allreduce", "30"]["As it is"] == "44 min"
    ours = at["numpy · mpi-allreduce", "7"]
    assert ours["Times that"] == "1.000" and ours["Scaled to (ranks)"] == "7"
    assert ours["As it is"].endswith("a sample")
    assert float(str(at["numpy · mpi-allreduce", "1"]["Times that"])) > 1
    [table] = [t for t in made.tables if "where it stops" in t.caption]
    assert len(table.rows) == 3


def triple(times: int, *, ends: tuple[float, float, float], ranks: int = 4, **axes):
    """Make a sum, the mean at the scaled rate, and the mean."""
    how = ({"reduce": "sum"} | axes, {"learning_rate_rule": "linear"}, {})
    return [
        rank_record(ranks=ranks, repeat=n, loss=loss, **axis)
        for n in range(times)
        for loss, axis in zip(ends, how, strict=True)
    ]


def test_a_sum_is_the_mean_at_as_many_times_the_rate():
    found = only("sum-rate", *triple(6, ends=(0.2, 0.2 + 1e-9, 0.4)))
    assert found.sureness is Sureness.FIRM
    assert "multiplies the learning rate by the replicas and does nothing else" in found.text
    assert "up to 4 replicas" in found.evidence and "at least 0.5 from the mean's" in found.evidence
    few = only("sum-rate", *triple(3, ends=(0.2, 0.2 + 1e-9, 0.4)))
    assert few.sureness is Sureness.TENTATIVE
    [row] = Made("ranks", *triple(3, ends=(0.2, 0.2, 0.4))).table("A sum beside the mean")
    assert row["Replicas"] == "4" and row[""] == "the scaled rate's path"


def test_a_sum_that_takes_another_path_or_none_that_can_be_told_says_so():
    other = only("sum-rate", *triple(6, ends=(0.4, 0.2, 0.4)))
    assert other.sureness is Sureness.TENTATIVE and "look at its sum" in other.text
    near = only("sum-rate", *triple(6, ends=(0.2, 0.21, 0.25)))
    assert near.sureness is Sureness.OPEN and "cannot be told" in near.text


def test_the_published_way_with_an_idle_rank_is_held_against_as_many_replicas():
    records = [r for r in triple(6, ends=(0.2, 0.2, 0.4), ranks=3) if r.cell.reduce == "mean"]
    idle = [
        rank_record(strategy="published-sendrecv", ranks=4, repeat=n, loss=0.2) for n in range(6)
    ]
    found = only("sum-rate", *records, *idle)
    assert (
        found.sureness is Sureness.FIRM
        and "numpy published-sendrecv, sum with 3 replicas" in found.text
    )
    # A wrong sum proves nothing.
    bad = [one.model_copy(update=WRONG) for one in idle]
    assert "sum-rate" not in findings(*records, *bad)


def test_messages_from_rank_to_rank_stand_beside_the_collective():
    records = [*repeated(strategy="mpi-sendrecv", ranks=4, waited=1.2e-3), *repeated(ranks=4)]
    found = only("point-to-point", *records)
    assert found.sureness is Sureness.FIRM
    assert "mpi-sendrecv takes 2 times (95 % interval" in found.text
    assert found.text.endswith("; published on as many ranks: 1.33 times.")
    [row] = Made("ranks", *records).table("Point-to-point over collective")
    assert row["Published ratio"] == "1.33" and row[""] == "longer"
    crowded = only(
        "point-to-point", *repeated(strategy="mpi-sendrecv", ranks=8), *repeated(ranks=8)
    )
    assert crowded.sureness is Sureness.OPEN and "this decides nothing" in crowded.text


def test_on_several_networks_each_has_its_own_pair_on_the_most_nodes():
    records = [
        record
        for network in ("1gbit", "direct")
        for nodes in (2, 4)
        for strategy, waited in (("mpi-sendrecv", 1.2e-3), ("mpi-allreduce", 1e-4))
        for record in repeated(strategy=strategy, ranks=1, nodes=nodes, network=network, batch=8,
                               waited=waited)
    ]  # fmt: skip
    found = findings(*records)["point-to-point"]
    assert [one.text.partition("4x1 ranks over ")[2][:5] for one in found] == ["1gbit", "direc"]


def sweep(*steps: float | None, cores: int = 4):
    return [
        record
        for batch, number in zip((8, 16, 32), steps, strict=False)
        for record in repeated(
            workload="iris-mlp-ce", batch=batch, steps_to_quality=number, cores=cores
        )
    ]


def test_a_larger_batch_saves_messages_only_where_it_learns_as_much_with_them():
    found = only("larger-batch", *sweep(400, 200, 160))
    assert found.sureness is Sureness.FIRM
    assert "batch 32 waits least, 0.4 times what batch 8 does" in found.text
    # An epoch of 14, 7 and 3 steps that wait as long each.
    assert (
        "batch 32 instead of 8 waits 301 µs of an epoch for messages instead of 1.4 ms"
        in found.text
    )
    table = Made("ranks", *sweep(400, 200, 160)).table("iris-mlp-ce, numpy, mpi-allreduce, 2 ranks")
    assert [row["Steps to the target"] for row in table] == ["400", "200", "160"]
    assert [row[""] for row in table] == ["None", "None", "waits least to the target"]


def test_a_larger_batch_that_learns_slower_saves_nothing_and_one_that_does_not_tells_nothing():
    worse = only("larger-batch", *sweep(100, 200, 300))
    assert "the smallest batch that reaches the target, 8, waits least" in worse.text
    assert worse.sureness is Sureness.FIRM and len(worse.comparisons) == 1
    same = only("larger-batch", *sweep(100, 100.1, 100.2))
    assert same.sureness is Sureness.OPEN and "cannot tell the batches apart" in same.text
    never = only("larger-batch", *sweep(100, None, None))
    assert never.sureness is Sureness.OPEN
    assert "batch 16 and batch 32 did not reach the target in every run" in never.text
    crowded = only("larger-batch", *sweep(400, 200, 160, cores=1))
    assert crowded.sureness is Sureness.OPEN and "ranks share cores" in crowded.evidence


def late(staleness: float, step_s: float, *, cores: int = 4, steps: float | None = 100):
    """Make a server with two workers, whose gradients are so late."""
    made = repeated(
        strategy="async", ranks=3, batch=8, computing=step_s, cores=cores, steps_to_quality=steps,
        changes={"staleness": staleness, "staleness_p95": 2 * staleness},
    )  # fmt: skip
    layout = {"replicas": 2, "model_parts": 1, "micro_batches": 1}
    updates = {"staleness_bound": 2, "largest_staleness": 5}
    return [
        one.model_copy(update={
            "details": one.details | {"layout": layout, "updates": updates},
            "metrics": [m for m in one.metrics if m.name != "equality_ratio"],
        })
        for one in made
    ]  # fmt: skip


def test_updates_that_nobody_held_to_a_reference_are_no_mean_beside_a_sum():
    assert "sum-rate" not in findings(
        *late(1.0, 5e-4), *triple(3, ends=(0.2, 0.2, 0.4), ranks=2)[:2]
    )


def test_a_whole_report_can_be_made_of_it(tmp_path):
    summary = build_report(
        write_rank_study(tmp_path), tmp_path / "report.html", title="T", questions=[]
    )
    assert summary["problems"] == []
    page = (tmp_path / "report.html").read_text()
    for key in ("ranks", "languages"):
        assert f'<section id="{key}">' in page
    assert "synthetic twin of the published ones" in page
