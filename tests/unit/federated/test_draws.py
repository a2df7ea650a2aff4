"""Draws: the published vectors of Philox, and what is made of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.federated.draws import Purpose, draw, orders, philox, rows_of_turns, seeds_of_turns, shuffled, uniform

SEEDS = st.integers(0, 2**64 - 1)
# kat_vectors of Random123 1.14 (D. E. Shaw Research): philox4x32 with 10 rounds; counter, key, result.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def one_by_one(key: list[int], counter: list[int]) -> list[int]:
    """Return Philox 4x32-10 in Python's integers, from the paper's figure."""
    (a, b, c, d), (first, second) = counter, key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = ((right >> 32) ^ b ^ first, right & 0xFFFFFFFF, (left >> 32) ^ d ^ second, left & 0xFFFFFFFF)
        first, second = (first + 0x9E3779B9) % 2**32, (second + 0xBB67AE85) % 2**32
    return [a, b, c, d]


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter, key, result):
    low, high = words(key)
    assert philox((low, high), np.array([words(counter)], np.uint64)).tolist() == [words(result)]
    assert one_by_one(words(key), words(counter)) == words(result)


@given(SEEDS, st.lists(st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_counters_side_by_side_are_those_one_by_one(seed, counters):
    key = seed % 2**32, seed >> 32
    expected = [one_by_one([*key], counter) for counter in counters]
    assert philox(key, np.array(counters, np.uint64)).tolist() == expected


@given(SEEDS, st.sampled_from(Purpose), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_a_draw_is_two_words_of_its_own_counter(seed, purpose, first, second, third):
    high, low, *_ = one_by_one([seed % 2**32, seed >> 32], [first, second, third, int(purpose)])
    assert draw(seed, purpose, first, second, third).tolist() == [high << 32 | low]


def test_what_is_drawn_depends_on_each_of_its_names():
    named = [
        (1, Purpose.ROWS, 2, 3, 4),
        (2**32 + 1, Purpose.ROWS, 2, 3, 4),
        (1, Purpose.SPEED, 2, 3, 4),
        (1, Purpose.ROWS, 3, 3, 4),
        (1, Purpose.ROWS, 2, 2, 4),
        (1, Purpose.ROWS, 2, 3, 5),
    ]
    assert len({int(draw(*one)[0]) for one in named}) == len(named)


def test_uniform_draws_fill_the_open_interval():
    drawn = uniform(draw(7, Purpose.SPEED, np.arange(100_000)))
    counts, _ = np.histogram(drawn, bins=100, range=(0, 1))
    # Chi-square with 99 degrees of freedom: above 160 in 1 of 10,000 seeds.
    assert ((counts - 1000) ** 2 / 1000).sum() < 160
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.02
    assert uniform(np.array([0, 2**64 - 1], np.uint64)).tolist() == [2.0**-53, 1 - 2.0**-53]


def test_every_order_of_three_is_as_frequent():
    orders = Counter(tuple(shuffled(3, Purpose.COHORT, 3, second).tolist()) for second in range(1200))
    assert len(orders) == 6
    assert max(abs(times - 200) for times in orders.values()) < 70


def rows_of_turn(seed, turn, rows, steps, batch):
    return rows_of_turns(seed, np.array([turn]), np.array([rows]), steps, batch)[0]


@given(SEEDS, st.sampled_from(Purpose), st.integers(0, 40), st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_an_order_is_that_of_32_bits_each(seed, purpose, count, seconds):
    key = [seed % 2**32, seed >> 32]
    for second, found in zip(seconds, orders(seed, purpose, count, np.array(seconds), 5).tolist(), strict=True):
        bits = [one_by_one(key, [i // 4, second, 5, int(purpose)])[i % 4] for i in range(count)]
        assert found == sorted(range(count), key=lambda i: (bits[i], i))


def test_turns_side_by_side_have_the_rows_of_each_alone():
    turns, rows = np.array([7, 0, 9, 4]), np.array([3, 30, 3, 5])
    together = rows_of_turns(1, turns, rows, 3, 4)
    alone = [rows_of_turn(1, turn, count, 3, 4) for turn, count in zip(turns, rows, strict=True)]
    np.testing.assert_array_equal(together, alone)
    # As docs/federated.md has it.
    assert together[0].tolist() == [[0, 1, 2, 1], [2, 0, 0, 2], [1, 1, 0, 2]]
    assert seeds_of_turns(1, turns, 2).shape == (4, 2) and len(set(seeds_of_turns(1, turns, 2).ravel())) == 8


@given(SEEDS, st.integers(0, 2**20), st.integers(1, 40), st.integers(1, 12), st.integers(1, 50))
@settings(max_examples=150, deadline=None)
def test_rows_of_a_turn_go_round_all_rows(seed, turn, rows, steps, batch):
    chosen = rows_of_turn(seed, turn, rows, steps, batch)
    assert (chosen.shape, chosen.dtype) == ((steps, batch), np.int64)
    flat = chosen.reshape(-1)
    for start in range(0, len(flat), rows):
        taken = flat[start : start + rows].tolist()
        assert len({*taken}) == len(taken)
        assert {*taken} <= {*range(rows)}
    # Neither more steps nor other batches change the order.
    longer = rows_of_turn(seed, turn, rows, steps + 3, batch)
    assert longer[:steps].tolist() == chosen.tolist()
    assert rows_of_turn(seed, turn, rows, 1, steps * batch).reshape(-1).tolist() == flat.tolist()


def test_passes_and_turns_have_orders_of_their_own():
    first, second = rows_of_turn(1, 0, 30, 2, 30)
    other, _ = rows_of_turn(1, 1, 30, 2, 30)
    assert len({tuple(order.tolist()) for order in (first, second, other)}) == 3
