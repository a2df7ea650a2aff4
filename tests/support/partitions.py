"""Random partition problems, and their answers by trying everything."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from transect.planner.costs import LayerCosts
from transect.planner.problem import Link, Problem, Solution
from transect.planner.reasons import least_memory


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


def random_problem(generator: np.random.Generator, count: int, devices: int, *, spread: bool = False) -> Problem:
    """Anything from homogeneous and free to slow devices, slow links and memory that one in six lacks."""
    links = [Link(*generator.uniform(0, [0.1, 5e-7])) for _ in range(devices - 1)]
    problem = Problem(
        layers=random_layers(generator, count),
        devices=devices,
        spread=spread,
        micro_batches=int(generator.integers(1, 17)),
        schedule="gpipe" if generator.random() < 0.5 else "1f1b",
        link=tuple(links),
        replicas=int(generator.integers(1, 4)),
        replica_link=Link(0.01, 1e-7),
        speeds=tuple(generator.uniform(0.5, 1, devices)) if generator.random() < 0.5 else (),
    )
    least = least_memory(problem)
    if not np.isfinite(least) or generator.random() < 0.2:
        return problem
    return replace(problem, memory_bytes=int(least * generator.uniform(0.9, 1.5)))


def by_trying(problem: Problem) -> Solution | None:
    """Return the best of all partitions, or None where none fits."""
    best: Solution | None = None
    for parts in range(1, problem.devices + 1):
        for cuts in itertools.combinations(range(1, problem.count), parts - 1):
            ends = (0, *cuts, problem.count)
            for ranks in itertools.product(range(1, problem.devices + 1), repeat=parts):
                if sum(ranks) != problem.devices or not (problem.spread or max(ranks) == 1):
                    continue
                found = problem.solution([*zip(ends, ends[1:], ranks, strict=False)], "trying")
                limits = iter(problem.memories)
                fits = all(stage.memory_bytes <= min(itertools.islice(limits, stage.devices)) for stage in found.stages)
                if fits and (best is None or found.step_s < best.step_s):
                    best = found
    return best
