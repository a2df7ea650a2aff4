"""Conjugate gradients with a multigrid preconditioner, its count of operations and of bytes, and its checks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from transect.hpc.probes._cg_grid import Level

# Of HPCG 3.1: iterations of a set, and those that the matrix with a large diagonal may take, without and with preconditioner.
ITERATIONS, PLAIN, PRECONDITIONED = 50, 12, 2
_DIAGONAL, _FIRST, _TOLERANCE = 1e6, 9, 1e-12
_SEED = 20260101


@dataclass(frozen=True, kw_only=True, slots=True)
class Solution:
    """x, how many iterations it took, and the norm of the residual by the recurrence over that of b."""

    x: np.ndarray
    iterations: int
    residual: float


def solve(
    level: Level, b: np.ndarray, iterations: int, *, tolerance: float = 0.0, precondition: bool = True
) -> Solution:
    """Solve A x = b from zero until the relative residual is within the tolerance, or for so many iterations."""
    kernels, rows = level.kernels, level.matrix.rows
    x, p, z = level.vector(), level.vector(), level.vector()
    r, ap = np.empty(rows), np.empty(rows)
    level.multiply(x, ap)
    kernels.combine(1.0, b, -1.0, ap, r, rows)
    start = norm = math.sqrt(level.dot(r, r))
    steps, rz = 0, 0.0
    while steps < iterations and norm > tolerance * start:
        if precondition:
            level.precondition(r, z)
        else:
            z[:rows] = r
        before, rz = rz, level.dot(r, z)
        kernels.combine(1.0, z, rz / before if steps else 0.0, p, p, rows)
        level.multiply(p, ap)
        alpha = rz / level.dot(p, ap)
        kernels.combine(1.0, x, alpha, p, x, rows)
        kernels.combine(1.0, r, -alpha, ap, r, rows)
        norm = math.sqrt(level.dot(r, r))
        steps += 1
    return Solution(x=x, iterations=steps, residual=norm / start)


def right_side(level: Level) -> np.ndarray:
    """Return b for which x is 1 everywhere."""
    return np.asarray(level.matrix.values.sum(axis=1))


def true_residual(level: Level, x: np.ndarray, b: np.ndarray) -> float:
    """Return ||b - A x|| / ||b||, made anew."""
    ax = np.empty(level.matrix.rows)
    level.multiply(x, ax)
    difference = b - ax
    return math.sqrt(level.dot(difference, difference) / level.dot(b, b))


def departures(level: Level) -> tuple[float, float]:
    """Return how far the product and the preconditioner are from symmetric, as HPCG's test has it: 1 at most.

    |x'Ay - y'Ax| / (2 eps ||A|| x'x y'y), with ||A|| = 52; the same with M, the preconditioner, in the place of A.
    """
    rng, rows = np.random.default_rng([_SEED, level.comm.rank]), level.matrix.rows
    x, y, out = level.vector(), level.vector(), level.vector()
    x[:rows], y[:rows] = rng.random(rows), rng.random(rows)
    scale = np.finfo(float).eps * 52.0 * 2 * level.dot(x, x) * level.dot(y, y)
    found = []
    for apply in (level.multiply, level.precondition):
        apply(y, out)
        one = level.dot(x, out)
        apply(x, out)
        found.append(abs(one - level.dot(y, out)) / scale)
    return found[0], found[1]


def spectral_steps(level: Level) -> tuple[int, int]:
    """Return the iterations without and with preconditioner where the diagonal is 10^6 times larger, in nine rows 2 to 10 times that.

    So the matrix has about ten distinct eigenvalues: HPCG's test wants at most PLAIN and PRECONDITIONED of them.
    """
    matrix, rows = level.matrix, np.arange(level.matrix.rows)
    scale = np.full(rows.size, _DIAGONAL)
    if level.comm.rank == 0:
        scale[:_FIRST] *= np.arange(2, _FIRST + 2)
    kept = matrix.values[rows, matrix.place]
    b = right_side(level) * scale
    matrix.values[rows, matrix.place] = kept * scale
    try:
        steps = [
            solve(level, b, ITERATIONS, tolerance=_TOLERANCE, precondition=way).iterations for way in (False, True)
        ]
    finally:
        matrix.values[rows, matrix.place] = kept
    return steps[0], steps[1]


def operations(iterations: int, rows: float, entries: list[float]) -> float:
    """Return HPCG's count of a set: `rows` of the finest grid, `entries` of each grid, over all ranks.

    With k iterations: 2 (3 k + 1) rows of dot products, as many of sums of vectors, 2 (k + 1) entries of products; of each grid
    but the coarsest k (4 + 2 + 4) entries (a sweep each way twice, a product), of the coarsest k 4.

    >>> operations(1, 1, [1, 1])
    34.0
    """
    k = float(iterations)
    vectors = 2 * (3 * k + 1) * 2 * rows
    return vectors + 2 * (k + 1) * entries[0] + k * (10 * sum(entries[:-1]) + 4 * entries[-1])


def iteration_bytes(level: Level) -> int:
    """Return the bytes that one iteration has to move on this rank: every array once for each kernel that takes it."""
    levels = level.below()
    total: int = level.matrix.product_bytes + level.matrix.rows * 8 * (2 + 2 + 1 + 3 * 3)
    for each in levels[:-1]:
        total += 2 * each.matrix.sweep_bytes + each.matrix.product_bytes
    return total + levels[-1].matrix.sweep_bytes
