"""What a report says of ranks beside published minutes and of where they stop, from made-up records."""

from __future__ import annotations

import pytest
from rank_records import data_record, probe, repeated, scaling
from said_of_records import Made, Sets, context, prose

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
    images = [*scaling((1, 7, 16, 30), workload="images-mlp"), data_record(), probe()]
    sections = {
        "section of exact": Made("ranks", *SETS["exact"]).prose,
        "section of images": Made("ranks", *images).prose,
    }
    assert prose(SETS, *KINDS) | sections == snapshot


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


@pytest.mark.parametrize("name", ["slower", "flat"])
def test_a_speed_up_that_is_none_or_may_be_noise_is_none(name):
    [one] = series(*SETS[name]).measured
    assert not one.stop.faster and SETS.only("rank-stop", name).confidence is Confidence.INCONCLUSIVE
