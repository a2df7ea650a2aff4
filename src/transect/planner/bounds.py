"""Which stages can be part of an optimal partition: bounds that leave the ILP few of them.

A stage at a place in the row is an arc from (devices before it, layers before it) to (devices, layers behind it); a
partition is a path. The best that any path through an arc can cost is bounded from below by the best path to it and
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
    """The layers [first, last) on `devices` from `device` on: t, s and e."""

    device: int
    devices: int
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


def _to(problem: Problem, limit: float = np.inf) -> _Bounds:
    """Bound the ways to each state whose stages have a t of at most `limit`."""
    found = _Bounds(*np.full((3, problem.devices + 1, problem.count + 1), np.inf))
    for one in found:
        one[0, 0] = 0.0
    for (device, devices), table in sorted(problem.tables.items()):
        ends, allowed = device + devices, table.fits & (table.time_s <= limit)
        columns = (
            (found.time, np.maximum(found.time[device][:, None], table.time_s)),
            (found.through, found.through[device][:, None] + table.through_s),
            (found.end, np.maximum(found.end[device][:, None], table.end_s)),
        )
        for best, reached in columns:
            least = np.where(allowed, reached, np.inf).min(axis=0)
            best[ends] = np.minimum(best[ends], least)
    return found


def _from(problem: Problem, limit: float = np.inf) -> _Bounds:
    """Bound the ways from each state, as `_to` those to it."""
    found = _Bounds(*np.full((3, problem.devices + 1, problem.count + 1), np.inf))
    for one in found:
        one[problem.devices, problem.count] = 0.0
    for (device, devices), table in sorted(problem.tables.items(), reverse=True):
        ends, allowed = device + devices, table.fits & (table.time_s <= limit)
        columns = (
            (found.time, np.maximum(found.time[ends][None, :], table.time_s)),
            (found.through, found.through[ends][None, :] + table.through_s),
            (found.end, np.maximum(found.end[ends][None, :], table.end_s)),
        )
        for best, reached in columns:
            least = np.where(allowed, reached, np.inf).min(axis=1)
            best[device] = np.minimum(best[device], least)
    return found


def _shortest(problem: Problem, limit: float) -> list[tuple[int, int, int]] | None:
    """Return the stages of least time through among those whose t is at most `limit`, or None."""
    best = np.full((problem.devices + 1, problem.count + 1), np.inf)
    best[0, 0] = 0.0
    came: dict[tuple[int, int], tuple[int, int]] = {}
    for (device, devices), table in sorted(problem.tables.items()):
        ends = device + devices
        allowed = table.fits & (table.time_s <= limit)
        reached = np.where(allowed, best[device][:, None] + table.through_s, np.inf)
        first, least = reached.argmin(axis=0), reached.min(axis=0)
        for layer in np.flatnonzero(least < best[ends]):
            best[ends, layer] = least[layer]
            came[ends, int(layer)] = device, int(first[layer])
    at = (problem.devices, problem.count)
    if not np.isfinite(best[at]):
        return None
    stages = []
    while at != (0, 0):
        device, first = came[at]
        stages.append((first, at[1], at[0] - device))
        at = (device, first)
    return stages[::-1]


def known_partition(problem: Problem) -> Solution | None:
    """Return a good partition, or None where there is none at all."""
    if problem.devices > problem.count and not problem.spread:
        return None  # without a table for each of ever so many devices
    least = float(_to(problem).time[problem.devices, problem.count])
    if not np.isfinite(least):
        return None
    ways = (_shortest(problem, least * slack * _ROUNDING) for slack in _SLACKS)
    found = [problem.solution(stages, "bound") for stages in ways if stages is not None]
    return min(found, key=lambda solution: solution.step_s)


def _worth(problem: Problem, most: float, low: float, high: float) -> dict[tuple[int, int], np.ndarray]:
    """Return which stages can be part of a partition that costs `most`, its bottleneck in [low, high]."""
    to, onward = _to(problem, high), _from(problem, high)
    rounds, found = problem.micro_batches - 1, {}
    for (device, devices), table in problem.tables.items():
        ends = device + devices

        def reach(term: int, own: np.ndarray, join: np.ufunc, device: int = device, ends: int = ends) -> np.ndarray:
            return join(own, join(to[term][device][:, None], onward[term][ends][None, :]))  # type: ignore[no-any-return]

        time = np.maximum(low, reach(0, table.time_s, np.maximum))
        least = reach(1, table.through_s, np.add) + reach(2, table.end_s, np.maximum)
        if rounds:
            least = least + rounds * time
        allowed = table.fits & (table.time_s <= high)
        found[device, devices] = allowed & (least <= most * _ROUNDING)
    return found


def lower_bound(problem: Problem) -> float:
    """Return what no partition goes below: the least of each of the step's three terms."""
    free, end = _to(problem), (problem.devices, problem.count)
    rounds = problem.micro_batches - 1
    waiting = float(free.time[end]) if rounds else 0.0
    return rounds * waiting + float(free.through[end]) + float(free.end[end])


def arcs_worth(problem: Problem, known: Solution) -> Iterator[Arc]:
    """Yield all stages that can be part of a partition that costs no more than the known one."""
    free = _to(problem)
    end = problem.devices, problem.count
    least = float(free.time[end])
    most = known.step_s - float(free.through[end]) - float(free.end[end])
    most = most / (problem.micro_batches - 1) if problem.micro_batches > 1 else np.inf
    edges = [least, np.inf]
    if least < most < np.inf:
        edges = [*np.linspace(least, most * _ROUNDING, _BANDS + 1)]
    found = {place: np.zeros_like(table.fits) for place, table in problem.tables.items()}
    for low, high in pairwise(edges):
        for place, worth in _worth(problem, known.step_s, low, high * _ROUNDING).items():
            found[place] |= worth
    for (device, devices), table in sorted(problem.tables.items()):
        worth = found[device, devices]
        for first, last in zip(*np.nonzero(worth), strict=True):
            own = int(first), int(last)
            yield Arc(
                device, devices, *own, float(table.time_s[own]), float(table.through_s[own]), float(table.end_s[own])
            )
