"""Exact sums: bit for bit what fractions say, whatever the order and the pieces."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transect.domain.errors import WrongResult
from transect.federated import exact_sum
from transect.federated.exact_sum import LIMIT, MAX_WEIGHT, ExactSum, exact_mean

BELOW = np.nextafter(LIMIT, 0)
NUMBERS = st.one_of(
    st.floats(-BELOW, BELOW, width=64),
    st.floats(-1, 1, width=32),
    # Halves of the last place that is kept, and what rounds to it.
    st.integers(-9, 9).map(lambda n: n * 2.0**-53),
    st.sampled_from([BELOW, -BELOW, 0.0, -0.0, 5e-324, 2.0**-52, 0.5, -0.5, 2.0**-26, 2.0**-27]),
)


def by_fractions(vectors: list[list[float]], weights: list[int], divisor: int) -> list[float]:
    """Return the means: round() of a fraction is exact, half to even; an integer becomes a float the same way."""
    means = []
    for column in zip(*vectors, strict=True):
        kept = sum(w * round(Fraction(x) * 2**52) for x, w in zip(column, weights, strict=True))
        means.append(float(round(Fraction(kept, max(divisor, 1)))) * 2.0**-52)
    return means


def in_pieces(vectors: np.ndarray, weights: np.ndarray, ends: list[int]) -> ExactSum:
    """Add pieces to sums of two ranks by turns, and add their parts."""
    ranks = [ExactSum(vectors.shape[1]), ExactSum(vectors.shape[1])]
    for number, (start, end) in enumerate(zip([0, *ends], [*ends, len(vectors)], strict=True)):
        ranks[number % 2].add(vectors[start:end], weights[start:end])
    ranks[0].parts += ranks[1].parts
    return ranks[0]


@st.composite
def weighted(draw):
    count, size = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    vectors = draw(st.lists(st.lists(NUMBERS, min_size=size, max_size=size), min_size=count, max_size=count))
    most = draw(st.sampled_from([1, 3, 1000, MAX_WEIGHT // count]))
    weights = draw(st.lists(st.integers(0, most), min_size=count, max_size=count))
    ends = sorted(draw(st.lists(st.integers(0, count), max_size=3)))
    return vectors, weights, ends, draw(st.permutations(range(count))), draw(st.integers(0, 5))


@given(weighted())
@example(([[BELOW], [-BELOW]], [MAX_WEIGHT // 2] * 2, [1], [1, 0], 0))
@example(([[-BELOW]], [MAX_WEIGHT], [], [0], 0))
@example(([[2.0**-52], [0.0]], [1, 1], [], [0, 1], 0))
@example(([[3 * 2.0**-52], [0.0]], [1, 1], [], [0, 1], 0))
@settings(max_examples=300, deadline=None)
def test_bits_are_those_of_fractions(case):
    vectors, weights, ends, order, more = case
    divisor = min(sum(weights) + more, MAX_WEIGHT)
    expected = np.array(by_fractions(vectors, weights, divisor))
    whole = ExactSum(len(vectors[0]))
    whole.add(np.array(vectors), np.array(weights))
    assert (whole.mean(divisor) + 0.0).tobytes() == (expected + 0.0).tobytes()
    assert (whole.weight, whole.count) == (sum(weights), len(weights))
    moved = in_pieces(np.array(vectors)[order], np.array(weights)[order], ends)
    assert moved.mean(divisor).tobytes() == whole.mean(divisor).tobytes()
    assert (moved.weight, moved.count) == (whole.weight, whole.count)


def test_what_is_split_for_speed_is_the_same(monkeypatch):
    random = np.random.default_rng(5)
    vectors, weights = random.normal(size=(700, 131)) * 300 % LIMIT, random.integers(0, 9, 700)
    total = ExactSum(131)
    total.add(vectors, weights)
    whole = total.mean(total.weight)
    assert whole.tolist() == by_fractions(vectors.tolist(), weights.tolist(), total.weight)
    for rows, numbers in ((1, 1), (3, 10), (10**6, 10**6)):
        monkeypatch.setattr(exact_sum, "_ROWS", rows)
        monkeypatch.setattr(exact_sum, "_NUMBERS", numbers)
        again = ExactSum(131)
        again.add(vectors[:, ::-1][:20], weights[:20])
        again.add(vectors[:, ::-1][20:], weights[20:])
        assert again.mean(again.weight)[::-1].tobytes() == whole.tobytes()


def test_a_mean_of_equal_vectors_is_the_vector():
    vector = np.random.default_rng(1).normal(size=50).astype(np.float32).astype(np.float64)
    for count in (1, 3, 7, 10, 49):
        assert exact_mean(np.tile(vector, (count, 1))).tobytes() == vector.tobytes()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, LIMIT, -LIMIT])
def test_numbers_that_no_sum_takes(wrong):
    total = ExactSum(3)
    with pytest.raises(WrongResult, match="not finite, or not below 1024"):
        total.add(np.array([[0.0, 1.0, 2.0], [0.0, wrong, 2.0]]), np.array([1, 1]))
    assert not total.parts.any()


@pytest.mark.parametrize(
    "weights", [[-1, 2], [MAX_WEIGHT, 1], [MAX_WEIGHT + 1, 0], [2**62, 2**62], [2**63 - 1, 1], [0.5, 1.5]]
)
def test_weights_that_no_sum_takes(weights):
    total = ExactSum(1)
    with pytest.raises(WrongResult, match="weight"):
        total.add(np.ones((2, 1)), np.array(weights))
    assert not total.parts.any()


def test_weights_of_four_that_would_wrap_round_to_nothing():
    with pytest.raises(WrongResult, match=re.escape("expected a whole number from 0 to 67108864")):
        ExactSum(1).add(np.ones((4, 1)), np.full(4, 2**62))


def test_weights_of_several_ranks_together():
    one, other = ExactSum(1), ExactSum(1)
    for rank in (one, other):
        rank.add(np.full((1, 1), BELOW), np.array([MAX_WEIGHT]))
    one.parts += other.parts
    with pytest.raises(WrongResult, match="sum to 134217728"):
        one.mean(one.weight)


def test_a_divisor_is_no_smaller_than_the_weights():
    total = ExactSum(1)
    total.add(np.ones((1, 1)), np.array([4]))
    assert total.mean(8) == 0.5
    with pytest.raises(WrongResult, match="expected 4 or more, the sum of the weights, got 3"):
        total.mean(3)


def test_nothing_and_weights_of_nothing():
    total = ExactSum(2)
    assert total.mean(total.weight).tolist() == [0, 0]
    total.add(np.ones((1, 2)), np.array([0]))
    total.add(np.empty((0, 2)), np.empty(0, np.int64))
    assert (total.mean(total.weight).tolist(), total.count) == ([0, 0], 1)
