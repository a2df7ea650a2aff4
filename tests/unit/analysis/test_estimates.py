"""Ratios of two samples as verdicts take them, and differences with the interval of the Mann-Whitney test."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.analysis.comparisons import Comparison, Verdict, compare, compare_paired
from transect.analysis.estimates import RATIO, Estimate, difference_of, ratio_of
from transect.analysis.noise import middle
from transect.analysis.statistics import NoiseFloor, Spread, mann_whitney_p, noise_floor
from transect.report.findings.decision import factor_interval

positive = st.floats(0.01, 100.0)


def test_the_ends_for_six_a_side_are_the_sixth_of_36_pairs_from_either_end() -> None:
    """The largest U that is rejected for 6 and 6 values is 5, as every table of it says."""
    a, b = [2.0**n for n in range(6)], [n / 7 for n in range(6)]
    found = difference_of(a, b)
    pairs = sorted(x - y for x in a for y in b)
    assert found is not None and found.spread is Spread.INTERVAL
    assert (found.low, found.high) == (pairs[5], pairs[-6])
    assert found.value == pytest.approx((pairs[17] + pairs[18]) / 2)


@pytest.mark.parametrize(("amount", "rank"), [(7, 9), (8, 14), (10, 24), (20, 128)])
def test_the_ranks_are_those_of_published_tables(amount: int, rank: int) -> None:
    a = [1000.0 * n for n in range(amount)]
    b = [float(n) for n in range(amount)]
    found = difference_of(a, b)
    assert found is not None
    assert found.low == sorted(x - y for x in a for y in b)[rank - 1]


def test_few_values_have_a_range_and_one_a_side_nothing() -> None:
    few, one = ratio_of([2.0, 3.0], [1.0] * 9), ratio_of([2.0], [4.0])
    assert few is not None and one is not None
    assert (few.low, few.high, few.spread) == (2.0, 3.0, Spread.RANGE)
    assert (one.value, one.low, one.high, one.spread) == (0.5, 0.5, 0.5, Spread.SINGLE)


def test_many_values_take_the_normal_distribution() -> None:
    rng = random.Random(3)
    a, b = ([rng.gauss(mean, 1) for _ in range(40)] for mean in (13.0, 10.0))
    found = difference_of(a, b)
    assert found is not None and 2 < found.low < 3 < found.high < 4


@pytest.mark.parametrize("sides", [([], [1.0]), ([1.0], []), ([1.0], [0.0]), ([-1.0], [1.0])])
def test_what_has_no_ratio_is_none(sides: tuple[list[float], list[float]]) -> None:
    assert ratio_of(*sides) is None


@given(st.lists(positive, min_size=6, max_size=9, unique=True),
       st.lists(positive, min_size=6, max_size=9, unique=True))  # fmt: skip
def test_the_interval_of_a_difference_leaves_0_out_exactly_where_the_test_rejects(
    a: list[float], b: list[float]
) -> None:
    if {*a} & {*b}:
        return
    found = difference_of(a, b)
    assert found is not None and found.low <= found.value <= found.high
    assert (found.low > 0 or found.high < 0) == (mann_whitney_p(a, b) <= 0.05)


SIDES = st.lists(positive, min_size=1, max_size=9)


def inside(found: Estimate) -> bool:
    return found.low * (1 - 1e-9) <= found.value <= found.high * (1 + 1e-9)


def inverted(found: Estimate, other: Estimate) -> bool:
    """Whether one is the other seen from the other side."""
    ends = zip(
        (found.value, found.low, found.high), (other.value, other.high, other.low), strict=True
    )
    return all(math.isclose(x, 1 / y, rel_tol=1e-6) for x, y in ends)


@given(SIDES, SIDES)
def test_a_ratio_lies_inside_its_ends_and_is_inverted_from_the_other_side(
    a: list[float], b: list[float]
) -> None:
    found, other = ratio_of(a, b), ratio_of(b, a)
    assert found is not None and other is not None
    assert inside(found) and inverted(found, other)
    assert inverted(found, found.inverse)
    assert math.isclose(found.value, middle(a) / middle(b), rel_tol=1e-9)


def compared(
    a: list[float], b: list[float], *, paired: bool, floor: NoiseFloor | None
) -> Comparison | None:
    if paired:
        return compare_paired(dict(enumerate(a)), dict(enumerate(b)), floor=floor)
    return compare(a, b, floor=floor)


@given(SIDES, SIDES, st.booleans(), st.booleans())
def test_verdict_claim_and_evidence_are_of_one_ratio(
    a: list[float], b: list[float], paired: bool, noisy: bool
) -> None:
    quiet = [[1.0, 1.02, 0.99], [2.0, 2.1, 1.97], [3.0, 3.01, 2.95]]
    floor = noise_floor(quiet) if noisy else None
    told, other = (compared(*sides, paired=paired, floor=floor) for sides in ((a, b), (b, a)))
    assert told is not None and other is not None
    assert told.ratio is not None and other.ratio is not None
    assert inside(told.ratio) and inverted(told.ratio, other.ratio)
    assert math.isclose(told.factor, max(told.ratio.value, 1 / told.ratio.value), rel_tol=1e-9)
    if told.decision is not None:
        assert (
            told.decision.ratio == told.ratio.value
            and f"{RATIO} {told.ratio.value:.3g}" in told.reason
        )
        claim = factor_interval(told)
        assert claim is not None and inside(claim) and claim.value == pytest.approx(told.factor)
    # Less is better: who is better is so by this very ratio.
    expected = {Verdict.BETTER: told.ratio.value < 1, Verdict.WORSE: told.ratio.value > 1}
    assert expected.get(told.verdict, True)
    seen = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    assert other.verdict is seen.get(told.verdict, Verdict.SAME)


@given(st.lists(SIDES.filter(lambda side: len(side) > 2), min_size=2, max_size=5), st.booleans())
def test_who_is_ranked_first_is_never_the_worse_of_two(
    sides: list[list[float]], noisy: bool
) -> None:
    floor = noise_floor(sides) if noisy else None
    first, *rest = sorted(sides, key=middle)
    for other in rest:
        told = compare(first, other, floor=floor)
        assert told is not None and told.verdict is not Verdict.WORSE
