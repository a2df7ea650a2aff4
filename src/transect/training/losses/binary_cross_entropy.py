"""The cross-entropy of zeros and ones, each by itself."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from transect.training.losses import LOSSES, Loss, as_numbers

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@LOSSES.register("binary-cross-entropy", "bce", "BCEWithLogitsLoss")
class BinaryCrossEntropy(Loss):
    """-t log s - (1 - t) log(1 - s) with s = sigmoid(output) and target t; the mean over all outputs."""

    targets = "labels"
    score = "label_accuracy"

    def operations(self, outputs: int) -> int:
        """Size, exponential, logarithm, maximum, product, two sums; the gradient's quotient and difference."""
        return 9 * outputs

    def value_and_gradient(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """Return both."""
        loss, gradient = _both(outputs, y, ())
        return float(loss), gradient

    def each(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both of all batches at once."""
        return _both(outputs, y, outputs.shape[:1])

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Add up each sample's share of outputs whose sign is right: positive for a 1."""
        return float(((outputs > 0) == (y > 0)).sum() / max(1, prod(outputs.shape[1:])))


def _both(outputs: np.ndarray, y: np.ndarray, batches: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each of `batches`, the first axes of both, and the gradient; exponentials are of negative numbers only."""
    wanted = as_numbers(outputs, y)
    small = np.exp(-np.abs(outputs))
    losses = (np.maximum(outputs, 0) - outputs * wanted + np.log1p(small)).reshape(*batches, -1)
    sigmoid = np.where(outputs >= 0, 1, small) / (1 + small)
    size = losses.shape[-1]
    return losses.sum(axis=-1) / size, (sigmoid - wanted) / size
