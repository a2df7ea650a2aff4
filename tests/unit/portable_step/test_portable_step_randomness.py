"""Dropout's hash: no product reaches 2^63, and its masks look like chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.portable_step.randomness import BOUND, KEYS, PRIME, SEED_MODULI, _scramble

KEY = st.integers(0, BOUND - 1)
COUNT = 1 << 18


def masks(place: int, base: int) -> np.ndarray:
    """Return hashes of a place's elements, as `kept` makes them, in [0, 1)."""
    places = np.arange(3 * place, 3 * place + 3)
    keys = _scramble(places, base, *KEYS[0][1:]) % BOUND
    return np.asarray(_scramble(np.arange(COUNT), *keys) / PRIME)


@given(value=KEY, first=KEY, second=KEY, third=KEY)
def test_int64_computes_what_integers_without_bound_do(value, first, second, third):
    wide = _scramble(value, first, second, third)
    with np.errstate(over="raise"):
        assert int(_scramble(*(np.int64(n) for n in (value, first, second, third)))) == wide
    assert 0 <= wide < PRIME


def test_the_largest_numbers_stay_below_2_to_the_63():
    most = BOUND - 1
    a = 2 * most
    largest = max(a * a, (PRIME - 1) * (a + most), (PRIME - 1) * (PRIME - 1 + most))
    assert largest < 2**63
    assert all(key < BOUND for triple in KEYS for key in triple)
    assert all(modulus < BOUND for modulus in SEED_MODULI)


@pytest.mark.parametrize("base", [0, 1, 2, 123456789, BOUND - 1])
def test_a_mask_is_uniform_and_neighbours_are_independent(base):
    drawn = masks(0, base)
    counts = np.histogram(drawn, bins=64, range=(0, 1))[0]
    chi = ((counts - COUNT / 64) ** 2 / (COUNT / 64)).sum()
    # 63 degrees of freedom: six standard deviations are 67.
    assert abs(chi - 63) < 6 * np.sqrt(2 * 63)
    centred = drawn - 0.5
    for lag in (1, 2, 3, 30, 64, 1000):
        correlation = 12 * (centred[lag:] * centred[:-lag]).mean()
        assert abs(correlation) < 6 / np.sqrt(COUNT)
    # Runs of dropped elements, where a hash of low degree shows.
    small = drawn < 0.1
    for length in (2, 3, 4):
        runs = np.lib.stride_tricks.sliding_window_view(small, length).all(axis=1).sum()
        expected = COUNT * 0.1**length
        assert abs(runs - expected) < 8 * np.sqrt(expected) + 3
