"""Random partition problems, and their answers by trying everything."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from transect.planner.costs import LayerCosts
from transect.planner.partition import least_memory
from transect.planner.problem import Link, Problem, Solution


def random_layers(generator: np.random.Generator, count: int) -> tuple[LayerCosts, ...]:
    """Layers of about 3 s, 1 MB of weights, 1 MB kept and 1 MB passed on, spread over two decades."""
    sizes = generator.lognormal(0, 1, (count, 5))
    return tuple(
        LayerCosts(
            name=str(index),
            forward_s=float(a),
            backward_s=float(2 * a),
            weight_bytes=int(1e6 * w),
            kept_bytes=int(1e6 * k),
            out_bytes=int(1e6 * o),
            update_s=float(u / 3),
        )
        for index, (a, w, k, o, u) in enumerate(sizes)
    )


def random_problem(generator: np.random.Generator, count: int, devices: int) -> Problem:
    """Anything from free to slow links and memory that one in six lacks."""
    links = [Link(*generator.uniform(0, [0.1, 5e-7])) for _ in range(devices - 1)]
    problem = Problem(
        layers=random_layers(generator, count),
        devices=devices,
        micro_batches=int(generator.integers(1, 17)),
        schedule="gpipe" if generator.random() < 0.5 else "1f1b",
        links=tuple(links),
        replicas=int(generator.integers(1, 4)),
        replica_link=Link(0.01, 1e-7),
    )
    least = least_memory(problem)
    if not np.isfinite(least) or generator.random() < 0.2:
        return problem
    return replace(problem, memory_bytes=int(least * generator.uniform(0.9, 1.5)))


def by_trying(problem: Problem) -> Solution | None:
    """Return the best of all partitions, or None where none fits."""
    every = itertools.combinations(range(1, problem.count), problem.devices - 1)
    found = [problem.solution(cuts, "trying") for cuts in every]
    fitting = [solution for solution in found if max(solution.memory_bytes) <= problem.room]
    return min(fitting, key=lambda solution: solution.step_s, default=None)


def by_fronts(problem: Problem) -> float | None:
    """Return the least step by dynamic programming over Pareto fronts of (bottleneck, through, end), or None."""
    fronts = {0: np.zeros((1, 3))}
    for table in problem.tables:
        reached: dict[int, np.ndarray] = {}
        for layer in range(1, problem.count + 1):
            ways = [
                np.column_stack(
                    [
                        np.maximum(fronts[first][:, 0], table.time_s[first, layer]),
                        fronts[first][:, 1] + table.through_s[first, layer],
                        np.maximum(fronts[first][:, 2], table.end_s[first, layer]),
                    ]
                )
                for first in np.flatnonzero(table.fits[:, layer])
                if first in fronts
            ]
            if ways:
                reached[layer] = _front(np.concatenate(ways))
        fronts = reached
    if problem.count not in fronts:
        return None
    return float((fronts[problem.count] @ [problem.micro_batches - 1, 1, 1]).min())


def _front(ways: np.ndarray) -> np.ndarray:
    """Leave out each way that an earlier one, sorted by the first column, beats or equals in the others."""
    kept = np.empty((0, 3))
    for way in ways[np.lexsort(ways.T[::-1])]:
        if not (kept[:, 1:] <= way[1:]).all(axis=1).any():
            kept = np.vstack([kept, way])
    return kept
