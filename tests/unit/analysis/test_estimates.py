"""Ratios and differences of two samples, with the interval of the Mann-Whitney test."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.analysis.estimates import difference_of, ratio_of
from transect.analysis.statistics import Spread, mann_whitney_p

positive = st.floats(0.01, 100.0)


def test_the_ends_for_six_a_side_are_the_sixth_of_36_pairs_from_either_end() -> None:
    """The largest U that is rejected for 6 and 6 values is 5, as every table of it says."""
    a, b = [2.0**n for n in range(6)], [2.0 ** (n / 7) for n in range(6)]
    found = ratio_of(a, b)
    pairs = sorted(x / y for x in a for y in b)
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
def test_the_interval_leaves_one_out_exactly_where_the_test_rejects(
    a: list[float], b: list[float]
) -> None:
    if {*a} & {*b}:
        return
    found = ratio_of(a, b)
    assert found is not None and found.low <= found.value <= found.high
    assert (found.low > 1 or found.high < 1) == (mann_whitney_p(a, b) <= 0.05)
    other = ratio_of(b, a)
    assert other is not None and math.isclose(other.low, 1 / found.high, rel_tol=1e-9)
