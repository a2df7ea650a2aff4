"""What a report says of ranks beside published minutes and of where they stop, from made-up records."""

from __future__ import annotations

import pytest
from pages import Page
from rank_records import data_record, probe, repeated, scaling
from said_of_records import Made, Sets, context, findings, prose

from transect.analysis.comparisons import Confidence
from transect.analysis.published_series import PUBLISHED
from transect.analysis.rank_costs import published_ratio
from transect.analysis.rank_series import problems

KINDS = ("near-linear", "rank-stop", "sum-rate", "point-to-point", "larger-batch")


def flat():
    """Make runs alike but for noise: the median of two ranks is less by a thousandth."""
    return [
        record
        for ranks, shift in ((1, 0.001), (2, 0.0))
        for record in repeated(
            strategy="single" if ranks == 1 else "mpi-allreduce",
            ranks=ranks,
            spread=0.004,
            computing=ranks * 1e-3 * (1 + shift),
            waited=0.0,
        )
    ]


SETS = Sets(
    exact=lambda: [*scaling((1, 2, 4, 8)), probe()],
    unprobed=lambda: scaling((1, 2, 4, 8)),
    crowded=lambda: [*scaling((1, 8)), probe()],
    images=lambda: scaling((1, 7, 30), workload="images-mlp"),
    slower=lambda: [*repeated(strategy="single", ranks=1), *repeated(ranks=2, waited=9e-3)],
    flat=flat,
)


def test_prose(snapshot):
    section = Made("ranks", *SETS["exact"]).prose
    assert prose(SETS, *KINDS) | {"section of exact": section} == snapshot


def series(*records):
    made = context(*records)
    [problem] = problems(made.of("train"), made.network_fits)
    return problem


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
    assert not findings(*records).keys() & set(KINDS)
    with pytest.raises(AssertionError):
        Made("ranks", *records)


def test_a_series_begins_with_one_rank_and_stays_within_its_cores():
    problem = series(*SETS["exact"])
    [one] = problem.measured
    assert [point.ranks for point in one.points] == [1, 2, 4, 8]
    assert [point.hollow for point in one.points] == [False, False, False, True]
    # t(p) of a sample is 0.2 + 0.8 / p of one rank's: on 4 ranks 0.4, the last within the cores.
    assert (one.stop.base, one.stop.fastest) == (1, 4)
    assert one.stop.speed_up == pytest.approx(2.5, rel=0.01)
    assert one.stop.efficiency == pytest.approx(0.625, rel=0.01)
    assert one.serial.share == pytest.approx(0.2, abs=0.01)
    assert "share cores" in one.stop.reason and "bound" in one.stop.reason
    first, second = problem.published
    assert (first.stop.fastest, second.stop.base) == (6, 2)
    assert first.stop.speed_up == pytest.approx(1.4 / 0.79)


def test_other_batches_of_a_rank_are_no_part_of_what_was_published():
    with pytest.raises(ValueError, match="not enough values"):
        series(*repeated(ranks=2, batch=16), *repeated(ranks=4, batch=16))


@pytest.mark.parametrize(
    ("name", "ranks", "speed_up", "ideal", "share", "measured"),
    [("exact", (1, 6), 1.77, 6, (0.52, 0.38, 0.71), 2.5), ("images", (7, 30), 2.05, 30 / 7, None, None)],
)
def test_near_linear_is_held_against_its_own_minutes(name, ranks, speed_up, ideal, share, measured):
    problem, found = series(*SETS[name]), SETS.only("near-linear", name)
    assert (found.confidence, found.subject) == (Confidence.CONFIRMED, "claims")
    one = problem.published[0]
    assert (one.stop.base, one.stop.fastest) == ranks
    assert (one.stop.speed_up, one.stop.ideal) == pytest.approx((speed_up, ideal), abs=0.005)
    assert f"{speed_up}" in found.text
    if share:
        assert (one.serial.share, one.serial.low, one.serial.high) == pytest.approx(share, abs=5e-3)
    # More ranks of images than cores: nothing is claimed of them.
    assert ("numpy" in found.text) is bool(measured)
    assert ("shares cores" in found.text) is (not measured)
    if measured:
        [own] = problem.measured
        assert own.stop.speed_up == pytest.approx(measured, rel=0.01) and own.stop.faster


def test_where_no_ranks_are_faster_nothing_is():
    [one] = series(*SETS["slower"]).measured
    assert one.stop.fastest == one.stop.base == 1 and not one.stop.faster
    assert one.serial.share is None and "90 %" in one.stop.reason
    assert "numpy" not in SETS.only("near-linear", "slower").text
    stop = SETS.only("rank-stop", "slower")
    assert stop.confidence is Confidence.INCONCLUSIVE and "cannot be told" in stop.evidence


def test_a_speed_up_that_may_be_noise_is_none():
    [one] = series(*SETS["flat"]).measured
    assert one.stop.fastest == 2 and one.serial.high == 1.0 and not one.stop.faster
    stop = SETS.only("rank-stop", "flat")
    assert stop.confidence is Confidence.INCONCLUSIVE and "noise" in stop.text
    assert [one.claimed for one in stop.tests] == [False]
    assert "numpy" not in SETS.only("near-linear", "flat").text


def test_where_it_stops_is_confirmed_within_the_cores_and_open_past_them():
    found = SETS.only("rank-stop", "exact")
    assert found.confidence is Confidence.CONFIRMED and all(one.claimed for one in found.tests)
    assert "20 % (95 %" in found.evidence
    crowded = SETS.only("rank-stop", "crowded")
    assert crowded.confidence is Confidence.INCONCLUSIVE and crowded.tests == () and "more cores" in crowded.text
    [one] = series(*SETS["unprobed"]).measured
    assert "network probe" in one.stop.reason and one.stop.reason in SETS.only("rank-stop", "unprobed").text


def test_the_chart_has_published_and_measured_lines_each_scaled_to_itself():
    made = Made("ranks", *scaling((1, 7, 16, 30), workload="images-mlp"), data_record(), probe())
    rows = [
        dict(zip([c.title for c in t.columns], row, strict=True))
        for t in [made.chart("Time for the same samples").table]
        for row in t.rows
    ]
    at = {(str(row["Series"]), str(row["Ranks"])): row for row in rows}
    assert at["published, Allreduce", "7"]["Times that"] == "1.000"
    assert at["published, Allreduce", "30"]["As it is"] == "44 min"
    ours = at["numpy · mpi-allreduce", "7"]
    assert ours["Times that"] == "1.000" and ours["Scaled to (ranks)"] == "7"
    assert ours["As it is"].endswith("a sample")
    assert float(str(at["numpy · mpi-allreduce", "1"]["Times that"])) > 1
    [table] = [t for t in made.tables if "where it stops" in t.caption]
    assert len(table.rows) == 3


def test_a_whole_report_can_be_made_of_it(ranks_report):
    page = Page.read(ranks_report)
    assert page.summary["problems"] == [] and {"ranks", "languages"} <= set(page.sections)
    assert "synthetic twin" in page.text
