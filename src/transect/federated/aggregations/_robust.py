"""What robust rules share: the attackers that they stand, distances, the scores of Krum, an order of their own."""

from __future__ import annotations

import hashlib

import numpy as np

from transect.domain.options import Option
from transect.federated.aggregations import Updates

ATTACKERS = Option(default=1, min=0, description="updates that may be anything")
# Numbers that are taken from each other at a time: few calls, and not much memory.
_NUMBERS = 2**18


def too_few(clients: int, needed: int, attackers: object) -> str | None:
    """Return the complaint about fewer updates than are needed, or None."""
    return (
        f"{clients} updates at once: expected {needed} or more for {attackers} attackers" if clients < needed else None
    )


def squared_distances(vectors: np.ndarray) -> np.ndarray:
    """Return the squares of the distances of all pairs, float64 (n, n), of (n, d).

    From differences, one row against the others, so that no more than n^2 + n d numbers are held. Norms and inner
    products would lose what large vectors differ by.
    """
    count, size = vectors.shape
    squares = np.zeros((count, count))
    width = max(1, _NUMBERS // count)
    for start in range(0, size, width):
        block = np.ascontiguousarray(vectors[:, start : start + width])
        for row in range(count - 1):
            apart = block[row + 1 :] - block[row]
            apart *= apart
            squares[row, row + 1 :] += apart.sum(axis=1)
    return squares + squares.T


def chosen_by_krum(vectors: np.ndarray, attackers: int, times: int, *, again: bool) -> np.ndarray:
    """Return which `times` of (n, d) Krum chooses, int64, the best first.

    The score of an update is the sum of the squares of its distances to the n - attackers - 2 nearest others, 1 at
    least, and the lowest is best; of equal ones the smaller index. `again`: scores are computed anew of those that are
    left whenever one is chosen.

    P. Blanchard et al., "Machine learning with adversaries: Byzantine tolerant gradient descent", NeurIPS 2017. Flower
    has as many neighbours; ByzFL 0.0.11 takes one more.
    """
    squares = squared_distances(vectors)
    order = np.argsort(squares, axis=1, kind="stable")
    near, left = np.take_along_axis(squares, order, axis=1), np.arange(len(vectors))
    chosen: list[int] = []
    while True:
        # The first is the distance to itself, or as small.
        scores = near[:, 1 : 1 + max(1, len(left) - attackers - 2)].sum(axis=1)
        if not again:
            return np.argsort(scores, kind="stable")[:times]
        best = int(np.argmin(scores))
        chosen.append(int(left[best]))
        if len(chosen) == times:
            return np.array(chosen)
        rows = np.arange(len(left)) != best
        stay = order[rows] != left[best]
        shape = len(left) - 1, len(left) - 1
        order, near, left = order[rows][stay].reshape(shape), near[rows][stay].reshape(shape), left[rows]


def in_own_order(updates: Updates) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors and counts in an order that depends on nothing but them.

    Sums with weights that are no whole numbers are rounded; in this order they are rounded alike whoever came first.
    """
    keys = [
        (hashlib.sha256(row.tobytes()).digest(), int(n)) for row, n in zip(updates.vectors, updates.counts, strict=True)
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return updates.vectors[order], updates.counts[order]
