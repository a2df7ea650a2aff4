"""Huber's loss: squares near the targets, distances far from them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from transect.training.losses import LOSSES, Loss, as_numbers

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@LOSSES.register("huber", "HuberLoss")
class Huber(Loss):
    """d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), with d = output - target; the mean over all numbers.

    P. J. Huber, "Robust estimation of a location parameter", 1964, as torch has it.
    """

    targets = "numbers"
    score = "mean_absolute_error"
    takes = ("delta",)

    def operations(self, outputs: int) -> int:
        """Difference, size, comparison, two products and a sum of each output; its gradient is what was cut off."""
        return 6 * outputs

    def value_and_gradient(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """Return both."""
        loss, gradient = _both(rule.delta, outputs, y, ())
        return float(loss), gradient

    def each(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both of all batches at once."""
        return _both(rule.delta, outputs, y, outputs.shape[:1])

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Add up each sample's mean distance."""
        return float(np.abs(outputs - y).sum() / max(1, prod(outputs.shape[1:])))


def _both(delta: float, outputs: np.ndarray, y: np.ndarray, batches: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each of `batches`, the first axes of both, and the gradient.

    With c = d cut off at +-delta the loss is c (d - c / 2), the gradient c.
    """
    difference = outputs - as_numbers(outputs, y)
    cut = np.clip(difference, -delta, delta)
    losses = (cut * (difference - 0.5 * cut)).reshape(*batches, -1)
    size = losses.shape[-1]
    return losses.sum(axis=-1) / size, cut / size
