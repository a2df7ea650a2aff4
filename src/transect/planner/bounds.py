"""Which stages can be part of an optimal partition: bounds that leave the ILP few of them.

A stage on a device is an arc from (devices before it, layers before it) to (devices, layers behind it); a partition is
a path. The best that any path through an arc can cost is bounded from below by the best path to it and
the best path from it, each term of the step's time on its own. An arc whose bound is above the cost of a partition
that is known is part of no better one.

A bottleneck and the time through pull in opposite directions, so they are bounded together: the bottlenecks that a
better partition may have are cut in bands, and in each the best path counts that keeps below its upper end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from transect.planner.problem import Problem, Solution

# Partitions are sought whose bottleneck is at most these times the least one.
_SLACKS = (1.0, 1.003, 1.01, 1.02, 1.03, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0, np.inf)
_BANDS = 24
# Rounding of sums of thousands of terms.
_ROUNDING = 1 + 1e-9


class Arc(NamedTuple):
    """The layers [first, last) on `device`: t, s and e."""

    device: int
    first: int
    last: int
    time_s: float
    through_s: float
    end_s: float


class _Bounds(NamedTuple):
    """Each (devices + 1, n + 1): the least of each term on any way to, or from, a state."""

    time: np.ndarray
    through: np.ndarray
    end: np.ndarray


# How a term of a way and the same of a stage make that of both.
_JOINS = _Bounds(np.maximum, np.add, np.maximum)  # type: ignore[arg-type]


def _bounds(problem: Problem, limit: float = np.inf, onward: bool = False) -> _Bounds:
    """Bound the ways to each state, or from it on, whose stages have a t of at most `limit`."""
    found = _Bounds(*np.full((3, problem.devices + 1, problem.count + 1), np.inf))
    for least_of in found:
        least_of[(problem.devices, problem.count) if onward else (0, 0)] = 0.0
    for device in range(problem.devices)[:: -1 if onward else 1]:
        table = problem.tables[device]
        allowed = table.fits & (table.time_s <= limit)
        for best, of_stage, join in zip(found, table, _JOINS, strict=False):
            known = best[device + 1][None, :] if onward else best[device][:, None]
            least = np.where(allowed, join(known, of_stage), np.inf).min(axis=int(onward))  # type: ignore[operator]
            best[device + (not onward)] = least
    return found


def _shortest(problem: Problem, limit: float) -> list[int] | None:
    """Return the cuts of least time through among those whose t is at most `limit`, or None."""
    best = np.full(problem.count + 1, np.inf)
    best[0] = 0.0
    came = []
    for table in problem.tables:
        allowed = table.fits & (table.time_s <= limit)
        reached = np.where(allowed, best[:, None] + table.through_s, np.inf)
        came.append(reached.argmin(axis=0))
        best = reached.min(axis=0)
    if not np.isfinite(best[-1]):
        return None
    cuts = [problem.count]
    for firsts in reversed(came):
        cuts.append(int(firsts[cuts[-1]]))
    return cuts[-2:0:-1]


def known_partition(problem: Problem) -> Solution | None:
    """Return a good partition, or None where there is none at all."""
    if problem.devices > problem.count:
        return None  # without a table for each of ever so many devices
    least = float(_bounds(problem).time[problem.devices, problem.count])
    if not np.isfinite(least):
        return None
    ways = (_shortest(problem, least * slack * _ROUNDING) for slack in _SLACKS)
    found = [problem.solution(cuts, "bound") for cuts in ways if cuts is not None]
    return min(found, key=lambda solution: solution.step_s)


def _worth(problem: Problem, most: float, low: float, high: float) -> list[np.ndarray]:
    """Return which stages can be part of a partition that costs `most`, its bottleneck in [low, high]."""
    to, onward = _bounds(problem, high), _bounds(problem, high, onward=True)
    found = []
    for device, table in enumerate(problem.tables):
        time, through, end = (
            join(of_stage, join(left[device][:, None], right[device + 1][None, :]))  # type: ignore[operator]
            for of_stage, left, right, join in zip(table, to, onward, _JOINS, strict=False)
        )
        least = through + end
        if problem.micro_batches > 1:
            least = least + (problem.micro_batches - 1) * np.maximum(low, time)
        found.append(table.fits & (table.time_s <= high) & (least <= most * _ROUNDING))
    return found


def lower_bound(problem: Problem) -> float:
    """Return what no partition goes below: the least of each of the step's three terms."""
    free, end = _bounds(problem), (problem.devices, problem.count)
    rounds = problem.micro_batches - 1
    waiting = float(free.time[end]) if rounds else 0.0
    return rounds * waiting + float(free.through[end]) + float(free.end[end])


def arcs_worth(problem: Problem, known: Solution) -> Iterator[Arc]:
    """Yield all stages that can be part of a partition that costs no more than the known one."""
    free = _bounds(problem)
    end = problem.devices, problem.count
    least = float(free.time[end])
    most = known.step_s - float(free.through[end]) - float(free.end[end])
    most = most / (problem.micro_batches - 1) if problem.micro_batches > 1 else np.inf
    edges = [least, np.inf]
    if least < most < np.inf:
        edges = [*np.linspace(least, most * _ROUNDING, _BANDS + 1)]
    found = [np.zeros_like(table.fits) for table in problem.tables]
    for low, high in pairwise(edges):
        for allowed, worth in zip(found, _worth(problem, known.step_s, low, high * _ROUNDING), strict=True):
            allowed |= worth
    for device, (table, worth) in enumerate(zip(problem.tables, found, strict=True)):
        for first, last in zip(*map(np.ndarray.tolist, np.nonzero(worth)), strict=True):
            at = first, last
            yield Arc(device, *at, float(table.time_s[at]), float(table.through_s[at]), float(table.end_s[at]))
