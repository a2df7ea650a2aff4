"""The squared distance to the targets."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from transect.training.losses import LOSSES, Loss, as_numbers

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@LOSSES.register("mse", "MSELoss", "l2")
class MeanSquaredError(Loss):
    """Of real numbers the mean of (output - target)^2 over all of them, as torch has it.

    Of class numbers half the squared distance to the vector of one 1 and zeros, summed over classes: the published
    loss of the image network.
    """

    targets = "numbers"
    score = "mean_squared_error"

    def operations(self, outputs: int) -> int:
        """A sum of squares, and one difference: of a class, the others are outputs themselves."""
        return 2 * outputs + 1

    def value_and_gradient(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """Return both."""
        loss, gradient = _both(outputs, y, ())
        return float(loss), gradient

    def each(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both of all batches at once."""
        return _both(outputs, y, outputs.shape[:1])

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Add up each sample's mean of squares."""
        return float(np.square(outputs - y).sum() / max(1, prod(outputs.shape[1:])))


def _both(outputs: np.ndarray, y: np.ndarray, batches: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each of `batches`, the first axes of both, and the gradient."""
    if y.shape == outputs.shape:
        difference = outputs - as_numbers(outputs, y)
        squares = np.square(difference).reshape(*batches, -1)
        size = squares.shape[-1]
        return squares.sum(axis=-1) / size, 2 * difference / size
    n = y.shape[-1]
    difference = outputs.copy().reshape(y.size, -1)
    difference[np.arange(y.size), y.reshape(-1)] -= 1
    squares = np.square(difference).reshape(*batches, -1)
    return 0.5 * squares.sum(axis=-1) / n, (difference / n).reshape(outputs.shape)
