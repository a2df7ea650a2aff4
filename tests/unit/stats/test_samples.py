"""Statistics against known values, the serial part of times, and the rules for calling something a difference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from transect.domain.metrics import Direction
from transect.report.topics.ranks.amdahl import serial_part
from transect.stats.comparisons import Confidence, Verdict, compare, compare_paired
from transect.stats.samples import NoiseFloor, Spread, noise_floor, paired_noise_floor, rank_interval, summarise

FLOOR = NoiseFloor(relative=0.05, pairs=9)


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # Ranks from tables of the binomial interval of the median, e.g. Le Boudec, appendix A.
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (20, 6, 15), (70, 27, 44)],
)
def test_rank_interval_gives_the_tabulated_ranks(count: int, low: int, high: int) -> None:
    found = rank_interval(list(range(1, count + 1)))
    assert found is not None
    assert found[:2] == (low, high)
    assert found[2] >= 0.95


def test_few_values_give_a_range_that_is_not_called_an_interval() -> None:
    summary = summarise([3.0, 1.0, 2.0])
    assert summary is not None
    assert (summary.spread, summary.low, summary.median, summary.high) == (Spread.RANGE, 1, 2, 3)
    assert summary.word == "range"


def test_an_interval_is_named_with_the_level_that_it_reaches() -> None:
    summary = summarise(map(float, range(8)))
    assert summary is not None and summary.word == "99.2 % interval"


def test_noise_floor_is_the_largest_ratio_of_few_pairs() -> None:
    floor = noise_floor([[1.0, 1.1], [2.0, 2.02], [5.0]])
    assert floor is not None
    assert floor.relative == pytest.approx(0.1)
    assert floor.pairs == 2
    assert noise_floor([[1.0], []]) is None


@pytest.mark.parametrize(
    ("a", "b", "floor", "verdict", "confidence", "reason"),
    [
        ([1.00, 1.001, 1.002], [1.03, 1.031, 1.032], FLOOR, Verdict.SAME, Confidence.CONFIRMED, "within 5 %"),
        ([1.0, 2.0, 3.0], [2.9, 4.0, 5.0], FLOOR, Verdict.SAME, Confidence.INCONCLUSIVE, "neither"),
        ([1.0, 1.01, 1.02], [2.0, 2.1, 2.2], FLOOR, Verdict.BETTER, Confidence.CONFIRMED, "p ="),
        ([1.0, 1.01], [2.0, 2.02], FLOOR, Verdict.BETTER, Confidence.PROVISIONAL, "too few runs"),
        ([1.0, 1.01, 1.02], [2.0, 2.1, 2.2], None, Verdict.BETTER, Confidence.PROVISIONAL, "no noise floor"),
        ([1.0], [100.0], None, Verdict.SAME, Confidence.INCONCLUSIVE, "ran twice"),
        ([0.0, 0.0], [1.0, 1.1], FLOOR, Verdict.BETTER, Confidence.PROVISIONAL, "not positive"),
        ([0.0, 2.0], [1.0, 1.1], FLOOR, Verdict.SAME, Confidence.INCONCLUSIVE, "not positive"),
    ],
)
def test_few_runs_decide_as_far_as_they_can(a, b, floor, verdict, confidence, reason) -> None:
    found = compare(a, b, floor=floor)
    assert found is not None
    assert (found.verdict, found.confidence) == (verdict, confidence) and reason in found.reason
    turned = compare(a, b, direction=Direction.HIGHER, floor=floor)
    assert turned is not None and (turned.verdict is Verdict.WORSE) == (verdict is Verdict.BETTER)


def test_what_a_seed_does_to_all_groups_is_no_noise() -> None:
    # Seed 1 takes a third longer in every group; 1 % is left.
    groups = [{0: 1.0, 1: 1.33}, {0: 2.0, 1: 2.66}, {0: 3.0, 1: 3.99 * 1.01}, {0: 5.0}]
    plain = noise_floor([list(group.values()) for group in groups])
    floor = paired_noise_floor(groups)
    assert plain is not None and floor is not None
    assert plain.relative == pytest.approx(0.3433)
    # One of three values, widened by sqrt(3 / 2) for the middle that was taken out.
    assert floor.relative == pytest.approx(1.01 ** math.sqrt(1.5) - 1)
    assert floor.pairs == 3


def test_two_groups_do_not_tell_a_seed_from_noise() -> None:
    floor = paired_noise_floor([{0: 1.0, 1: 1.2}, {0: 2.0, 1: 2.4}])
    assert floor is not None
    assert floor.relative == pytest.approx(0.2)
    assert paired_noise_floor([{0: 1.0}, {1: 2.0}]) is None


def test_seeds_that_overlap_are_told_apart_in_pairs() -> None:
    fast, slow = {0: 1.0, 1: 1.4, 2: 1.2}, {0: 1.2, 1: 1.7, 2: 1.45, 3: 9.0}
    found = compare(list(fast.values()), list(slow.values())[:3], floor=FLOOR)
    assert found is not None and found.verdict is Verdict.SAME
    paired = compare_paired(fast, slow, floor=FLOOR)
    assert paired is not None and paired.verdict is Verdict.BETTER
    assert paired.ratio is not None
    assert paired.ratio.inverse.value == pytest.approx((1.2 * 1.7 / 1.4 * 1.45 / 1.2) ** (1 / 3))
    assert paired.b.count == 3, "only what both have"
    back = compare_paired(slow, fast, floor=FLOOR)
    assert back is not None and back.verdict is Verdict.WORSE
    assert compare_paired({0: 1.0}, {1: 2.0}) is None


@pytest.mark.parametrize(("share", "ranks"), [(0.0, (1, 2, 4)), (0.2, (1, 2, 3)), (0.9, (1, 8))])
def test_the_serial_part_of_exact_times_is_found_exactly(share, ranks):
    points = [(p, share + (1 - share) / p) for p in ranks for _ in range(2)]
    found = serial_part(points)
    assert found.share == pytest.approx(share, abs=1e-9)
    assert found.low == pytest.approx(share, abs=1e-6) == found.high
    assert found.ranks == ranks


def test_the_interval_of_the_serial_part_holds_it_as_often_as_it_says():
    draw, held, known = np.random.default_rng(5), 0, 0
    for _ in range(400):
        points = [(p, (0.3 + 0.7 / p) * (1 + draw.normal(0, 0.04))) for p in (1, 2, 4) for _ in "ab"]
        found = serial_part(points)
        known += found.share is not None
        held += found.share is not None and found.low <= 0.3 <= found.high
    assert known > 380 and 0.92 <= held / known <= 0.98


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([], "nothing was measured"),
        ([(1, 1.0), (2, 1.2), (4, 1.3)], "no larger number"),
        ([(1, 1.0), (2, 0.6)], "two runs"),
        ([(1, 1.0), (1, 0.2), (2, 0.9), (2, 0.1)], "scatter too much"),
        ([(1, 1.0), (1, 1.01), (2, 0.45), (2, 0.46), (4, 0.2)], "gain more"),
    ],
)
def test_what_the_times_cannot_tell_is_not_told(points, reason):
    found = serial_part(points)
    assert found.share is None and reason in found.reason
    assert (found.low, found.high) == (0.0, 1.0)


def test_times_beyond_the_fastest_take_no_part_in_the_law():
    points = [(p, 0.5 + 0.5 / p) for p in (1, 2, 4)]
    assert serial_part([*points, (8, 2.0)]) == serial_part(points)
