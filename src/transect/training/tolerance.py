"""How far a run in a lower precision may stray from a float64 one, from perturbed float64 runs.

Why this is the measure of it: `payloads/reference.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.distance import weights_distance
from transect.training.losses import LOSSES

PERTURBED_RUNS = 4
SAFETY = 16.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """Of each step's loss, (steps,), and of the relative distance of the weights at the end."""

    loss: np.ndarray
    weights: float


class Run(Protocol):
    """A run in float64: its loss per step, (steps,), and all weights at the end."""

    @property
    def loss(self) -> np.ndarray:
        """Of each step, (steps,)."""

    @property
    def weights(self) -> Mapping[str, np.ndarray]:
        """All arrays at the end."""


def rule(precision: str, terms: int) -> str:
    """State the tolerance's derivation in one sentence."""
    return (
        f"{SAFETY:g} x the largest deviation of {PERTURBED_RUNS} float64 runs in which every step "
        f"perturbs stored weights by u = {find_precision(precision).unit_roundoff:.1e} ({precision}), and what it "
        f"computes with and its gradients by u sqrt(K), K = {terms}, plus {SAFETY:g} u sqrt(K) times "
        f"the loss or weights, and {SAFETY:g} u, float32's at most, of a cross-entropy"
    )


def loss_rounding(loss: str, unit: float) -> float:
    """Return by how much a loss errs however small it is. Frameworks compute it in float32 at least."""
    return min(unit, find_precision("fp32").unit_roundoff) * LOSSES.get(loss).rounds_at_one


def tolerance_of(exact: Run, perturbed_runs: Iterable[Run], noise: float, least: float) -> Tolerance:
    """Return how far a run may stray from the `exact` one, given perturbed ones.

    `noise` is u sqrt(K): what one step's sums err by, relatively. `least` is `loss_rounding`.
    """
    spread, moved = np.zeros_like(exact.loss), 0.0
    for perturbed in perturbed_runs:
        # A run that overflows says that anything may happen: no deviation is too large.
        spread = np.maximum(spread, np.nan_to_num(np.abs(perturbed.loss - exact.loss), nan=np.inf))
        distance = weights_distance(perturbed.weights, exact.weights)
        moved = max(moved, np.inf if np.isnan(distance) else distance)
    return Tolerance(
        loss=SAFETY * (np.maximum.accumulate(spread) + noise * np.abs(exact.loss) + least),
        weights=float(SAFETY * (moved + noise)),
    )
