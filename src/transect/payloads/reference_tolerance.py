"""The tolerance of a precision along one path, by perturbed runs of the same problem."""

from __future__ import annotations

import numpy as np

from transect.domain.precisions import PRECISIONS
from transect.payloads.reference_path import Path64, Problem, trajectory
from transect.training.tolerance import PERTURBED_RUNS, Tolerance, tolerance_of


def measure_tolerance(problem: Problem, exact: Path64, precision: str) -> Tolerance:
    """Run the problem perturbed a few times beside its `exact` path."""
    unit = PRECISIONS[precision].unit_roundoff
    noise = unit * np.sqrt(problem.plan.model.longest_sum(problem.cell.batch or 1))
    seeds = range(1, 1 + PERTURBED_RUNS)
    return tolerance_of(exact, (trajectory(problem, unit, noise, seed=seed) for seed in seeds), noise)
