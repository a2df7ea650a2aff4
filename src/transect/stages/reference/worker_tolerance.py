"""The tolerance of a precision along one path, by perturbed runs of the same problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.domain.precisions import PRECISIONS, find_precision
from transect.stages.reference.worker_path import Path64, Problem, trajectory
from transect.training.distance import weights_distance

__all__ = ["PERTURBED_RUNS", "SAFETY", "Tolerance", "measure_tolerance", "rule"]

PERTURBED_RUNS = 4
SAFETY = 16.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """Of each step's loss, (steps,), and of the relative distance of the weights at the end."""

    loss: np.ndarray
    weights: float


def rule(precision: str, terms: int) -> str:
    """State the tolerance's derivation in one sentence."""
    return (
        f"{SAFETY:g} x the largest deviation of {PERTURBED_RUNS} float64 runs in which every step "
        f"perturbs stored weights by u = {find_precision(precision).unit_roundoff:.1e} ({precision}), and what it "
        f"computes with and its gradients by u sqrt(K), K = {terms}, plus {SAFETY:g} u sqrt(K) times "
        "the loss or weights"
    )


def measure_tolerance(problem: Problem, exact: Path64, precision: str) -> Tolerance:
    """Run the problem perturbed a few times beside its `exact` path."""
    unit = PRECISIONS[precision].unit_roundoff
    noise = unit * np.sqrt(problem.plan.model.longest_sum(problem.cell.batch or 1))
    spread, moved = np.zeros_like(exact.loss), 0.0
    for run in range(PERTURBED_RUNS):
        perturbed = trajectory(problem, unit, noise, seed=1 + run)
        # A run that overflows says that anything may happen: no deviation is too large.
        spread = np.maximum(spread, np.nan_to_num(np.abs(perturbed.loss - exact.loss), nan=np.inf))
        distance = weights_distance(perturbed.weights, exact.weights)
        moved = max(moved, np.inf if np.isnan(distance) else distance)
    return Tolerance(
        loss=SAFETY * (np.maximum.accumulate(spread) + noise * np.abs(exact.loss)),
        weights=float(SAFETY * (moved + noise)),
    )
