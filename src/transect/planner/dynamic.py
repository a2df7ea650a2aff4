"""The optimal partition by dynamic programming over Pareto fronts: exact, and what the ILP is held to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transect.planner.problem import Infeasible, Problem, Solution
from transect.planner.reasons import infeasible


class _Front(NamedTuple):
    """Ways to place the first layers on the first devices, none of which another one beats in all three.

    Each (m,): bottleneck, time through, end; and where each comes from: state, place in its front.
    """

    time: np.ndarray
    through: np.ndarray
    end: np.ndarray
    came: np.ndarray  # (m, 4): device, layer, place in that front, devices of the stage


def _best(problem: Problem, front: _Front) -> np.ndarray:
    steps: np.ndarray = (problem.micro_batches - 1) * front.time + front.through + front.end
    return steps


def _pareto(front: _Front) -> _Front:
    order = np.lexsort((front.end, front.through, front.time))
    kept: list[int] = []
    through, end = front.through[order], front.end[order]
    # Sorted by time: a way is beaten by any earlier one that is no worse in the other two.
    best_through = np.empty(0)
    best_end = np.empty(0)
    for place in range(len(order)):
        if not np.any((best_through <= through[place]) & (best_end <= end[place])):
            kept.append(place)
            stays = (best_through < through[place]) | (best_end < end[place])
            best_through = np.append(best_through[stays], through[place])
            best_end = np.append(best_end[stays], end[place])
    chosen = order[kept]
    return _Front(front.time[chosen], front.through[chosen], front.end[chosen], front.came[chosen])


def _join(problem: Problem, fronts: dict[tuple[int, int], _Front], device: int, layer: int) -> _Front | None:
    """Return the front of the first `layer` layers on the first `device` devices, or None."""
    parts = []
    for devices in range(1, (device if problem.spread else 1) + 1):
        begin = device - devices
        table = problem.tables[begin, devices]
        for first in np.flatnonzero(table.fits[:, layer]):
            known = fronts.get((begin, int(first)))
            if known is None:
                continue
            size = len(known.time)
            came = np.empty((size, 4), np.int64)
            came[:] = begin, first, 0, devices
            came[:, 2] = np.arange(size)
            parts.append(
                _Front(
                    np.maximum(known.time, table.time_s[first, layer]),
                    known.through + table.through_s[first, layer],
                    np.maximum(known.end, table.end_s[first, layer]),
                    came,
                )
            )
    if not parts:
        return None
    return _pareto(_Front(*(np.concatenate(columns) for columns in zip(*parts, strict=True))))


def partition(problem: Problem) -> Solution | Infeasible:
    """Return the best partition of all, or which constraint leaves none.

    A state is a number of devices and a number of layers. Bottleneck, time through and end only grow, so a way that is no
    better in any of the three than another one to the same state is part of no better end.
    """
    start = _Front(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros((1, 4), np.int64))
    fronts: dict[tuple[int, int], _Front] = {(0, 0): start}
    for device in range(1, problem.devices + 1):
        for layer in range(1, problem.count + 1):
            front = _join(problem, fronts, device, layer)
            if front is not None:
                fronts[device, layer] = front
    last = fronts.get((problem.devices, problem.count))
    if last is None:
        return infeasible(problem)
    stages, device, layer = [], problem.devices, problem.count
    place = int(np.argmin(_best(problem, last)))
    while device:
        begin, first, before, devices = (int(n) for n in fronts[device, layer].came[place])
        stages.append((first, layer, devices))
        device, layer, place = begin, first, before
    return problem.solution(stages[::-1], "dynamic")
