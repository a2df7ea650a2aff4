"""The cross-entropy of the next tokens of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.losses import LOSSES, Loss
from transect.training.losses.cross_entropy import cross_entropy

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@LOSSES.register("next-token")
class NextToken(Loss):
    """The cross-entropy of outputs (n, time, vocabulary) and token numbers (n, time), a mean over all places.

    The data says which token is next: a sample's targets are its tokens, one place on.
    """

    targets = "tokens"
    score = "token_accuracy"
    takes = ("label_smoothing",)
    rounds_at_one = True

    def operations(self, outputs: int) -> int:
        """As many as cross-entropy for each output; what belongs to a place is not counted."""
        return 3 * outputs

    def value_and_gradient(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """Return both."""
        loss, gradient = cross_entropy(outputs.reshape(-1, outputs.shape[-1]), y.reshape(-1), rule.label_smoothing)
        return float(loss), gradient.reshape(outputs.shape)

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Add up each sample's share of tokens that have the largest output."""
        return float((outputs.argmax(axis=-1) == y).mean(axis=1).sum())
