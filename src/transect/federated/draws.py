"""Random numbers that any language can draw: Philox 4x32 with 10 rounds, a function of a key and a counter.

J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11. A draw depends on what it is for and on
nothing that was drawn before, so clients, ranks and languages agree without passing a state around. docs/federated.md
has test vectors.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

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
    words = philox(_key(seed), _counters(places, second, third, purpose))
    drawn: np.ndarray = (words[:, 0] << _HALF) | words[:, 1]
    return drawn


def shuffled(seed: int, purpose: Purpose, count: int, second: int = 0, third: int = 0) -> np.ndarray:
    """Return 0 to `count` - 1, int64, in a drawn order: `orders` of one."""
    order: np.ndarray = orders(seed, purpose, count, np.array([second]), third)[0]
    return order


def orders(seed: int, purpose: Purpose, count: int, seconds: np.ndarray, third: int = 0) -> np.ndarray:
    """Return 0 to `count` - 1 in a drawn order for each number in `seconds`, int64 (len(seconds), count).

    They are sorted by their `bits`; of equal ones the smaller number is first.
    """
    # Number and bits in one: equal bits are sorted by their number, and no sort has to be stable.
    keys = (bits(seed, purpose, count, seconds, third) << _HALF) | np.arange(count, dtype=np.uint64)
    keys.sort(axis=1)
    return (keys & _LOW).astype(np.int64)


def bits(seed: int, purpose: Purpose, count: int, seconds: np.ndarray, third: int = 0) -> np.ndarray:
    """Return 32 bits for each number i below `count` and each in `seconds`, uint64 (len(seconds), count).

    They are word i mod 4 at the counter (i div 4, second, third, purpose).
    """
    blocks = -(-count // 4)
    first, second = np.tile(np.arange(blocks), len(seconds)), np.repeat(seconds, blocks)
    words = philox(_key(seed), _counters(first, second, third, purpose)).reshape(len(seconds), 4 * blocks)
    return words[:, :count]


def _key(seed: int) -> tuple[int, int]:
    return seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF


def _counters(first: np.ndarray, second: Any, third: int, purpose: Purpose) -> np.ndarray:
    counters = np.empty((len(first), 4), np.uint64)
    counters[:, 0], counters[:, 1], counters[:, 2], counters[:, 3] = first, second, third, int(purpose)
    return counters


def uniform(drawn: np.ndarray) -> np.ndarray:
    """Return float64 in (0, 1) of draws of 64 bits: the upper 52, plus a half. With 53 the largest would round to 1."""
    return np.asarray(((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def rows_of_turns(seed: int, turns: np.ndarray, rows: np.ndarray, steps: int, batch: int) -> np.ndarray:
    """Return which of its client's rows each step of each turn learns from, int64 (turns, steps, batch).

    `turns` are their numbers, `rows` how many each one's client has, (turns,). A client goes through all its rows in a
    drawn order, then through all of them in another one, and so on; a batch may reach over the end of a pass, and have
    a row twice where the client has fewer rows than a batch takes.
    """
    needed = steps * batch
    found = np.empty((len(turns), needed), np.int64)
    for size in np.unique(rows):
        which = np.flatnonzero(rows == size)
        for number in range(-(-needed // int(size))):
            begin = number * int(size)
            order = orders(seed, Purpose.ROWS, int(size), turns[which], number)
            found[which, begin : begin + int(size)] = order[:, : needed - begin]
    return found.reshape(len(turns), steps, batch)


def seeds_of_turns(seed: int, turns: np.ndarray, steps: int) -> np.ndarray:
    """Return the seed of what each step draws, such as dropout: int64 (turns, steps), below 2^31."""
    first, second = np.tile(np.arange(steps), len(turns)), np.repeat(turns, steps)
    words = philox(_key(seed), _counters(first, second, 0, Purpose.SEED))
    return (words[:, 0] >> np.uint64(1)).astype(np.int64).reshape(len(turns), steps)
