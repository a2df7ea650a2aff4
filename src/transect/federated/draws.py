"""Random numbers that any language can draw: Philox 4x32 with 10 rounds, a function of a key and a counter.

J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11. A draw depends on what it is for and on
nothing that was drawn before, so clients, ranks and languages agree without passing a state around. docs/federated.md
has test vectors.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class Purpose(IntEnum):
    """What is drawn: the last word of the counter."""

    COHORT = 1
    ROWS = 2
    NEXT_CLIENT = 3
    PARTITION = 4
    SPEED = 5
    SEED = 6


def philox(key: tuple[int, int], counter: np.ndarray) -> np.ndarray:
    """Return four random 32-bit words, uint64 (n, 4), for each counter of four 32-bit words, (n, 4).

    >>> [hex(int(word)) for word in philox((0, 0), np.zeros((1, 4), np.uint64))[0]]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    a, b, c, d = np.asarray(counter, np.uint64).T
    for number in range(_ROUNDS):
        first, second = (np.uint64((word + number * step) & 0xFFFFFFFF) for word, step in zip(key, _WEYL, strict=True))
        left, right = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, b, c, d = (right >> _HALF) ^ b ^ first, right & _LOW, (left >> _HALF) ^ d ^ second, left & _LOW
    return np.stack([a, b, c, d], axis=1)


def draw(seed: int, purpose: Purpose, first: np.ndarray | int, second: int = 0, third: int = 0) -> np.ndarray:
    """Return a random number of 64 bits, uint64 (n,), for each number in `first`: words 0 (high) and 1 of Philox.

    The key is `seed` (low word, high word), the counter (first, second, third, purpose).
    """
    places = np.atleast_1d(np.asarray(first, np.uint64))
    counter = np.empty((len(places), 4), np.uint64)
    counter[:, 0] = places
    counter[:, 1:] = second, third, int(purpose)
    words = philox((seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF), counter)
    return np.asarray((words[:, 0] << _HALF) | words[:, 1])


def shuffled(seed: int, purpose: Purpose, count: int, second: int = 0, third: int = 0) -> np.ndarray:
    """Return 0 to `count` - 1, int64, in the order of their draws; of equal draws the smaller number is first."""
    return np.argsort(draw(seed, purpose, np.arange(count), second, third), kind="stable")


def uniform(bits: np.ndarray) -> np.ndarray:
    """Return float64 in (0, 1) of draws of 64 bits: the upper 52, plus a half. With 53 the largest would round to 1."""
    return np.asarray(((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def rows_of_turn(seed: int, turn: int, rows: int, steps: int, batch: int) -> np.ndarray:
    """Return which of a client's `rows` each step of its turn learns from, int64 (steps, batch).

    It goes through all its rows in a drawn order, then through all of them in another one, and so on; a batch may
    reach over the end of a pass, and have a row twice where the client has fewer rows than a batch takes.
    """
    passes = -(-steps * batch // rows)
    order = np.concatenate([shuffled(seed, Purpose.ROWS, rows, turn, number) for number in range(passes)])
    return order[: steps * batch].reshape(steps, batch)
