"""Why there is no partition: the constraint that leaves none, in words."""

from __future__ import annotations

import numpy as np

from transect.planner.problem import Infeasible, Problem


def mebibytes(size: float) -> str:
    """Write a number of bytes.

    >>> [mebibytes(size) for size in (4096, 2**20, 3 * 2**30)]
    ['0.00391 MiB', '1 MiB', '3,072 MiB']
    """
    whole = size / 2**20
    return f"{whole:,.0f} MiB" if whole >= 1000 else f"{whole:.3g} MiB"


def least_memory(problem: Problem) -> float:
    """Return the least bytes that every device would have to have for any partition to fit.

    Infinite where even unlimited memory leaves none. A shortest path by the largest stage.
    """
    places = np.arange(problem.count + 1)
    ordered = places[None, :] > places[:, None]
    best = np.full(problem.count + 1, np.inf)
    best[0] = 0.0
    for table in problem.tables:
        best = np.where(ordered, np.maximum(best[:, None], table.memory), np.inf).min(axis=0)
    return float(best[-1])


def infeasible(problem: Problem) -> Infeasible:
    """Say which constraint leaves no partition of a problem that has none."""
    if problem.count < problem.devices:
        return Infeasible(
            f"stages: {problem.count} layers cannot be cut in {problem.devices} stages of at least one layer each"
        )
    least = least_memory(problem)
    most = problem.room
    for layer in problem.layers:
        # One micro-batch is live at the last stage, whatever the schedule is called.
        alone = problem.copies * layer.weight_bytes + layer.kept_bytes
        if alone > most:
            return Infeasible(
                f"memory: layer {layer.name} alone needs {mebibytes(alone)} for its weights, gradients and one "
                f"micro-batch, a device has {mebibytes(most)}: smaller micro-batches, or more memory"
            )
    live = f"{problem.live(0)} live micro-batches in the first stage ({problem.schedule})"
    return Infeasible(
        f"memory: every cut in {problem.devices} stages needs a device with at least "
        f"{mebibytes(least)}, with {live}; they have {mebibytes(most)}"
    )
