"""The cross-entropy of class numbers and the softmax of logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.losses import LOSSES, Loss

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@LOSSES.register("cross-entropy", "CrossEntropyLoss")
class CrossEntropy(Loss):
    """-sum_c q_c log softmax(outputs)_c, where q is 1 for the sample's class.

    With `label_smoothing` s each of C classes gets s / C, and the sample's own 1 - s more (C. Szegedy et al.,
    "Rethinking the Inception architecture", arXiv:1512.00567, section 7), as torch has it.
    """

    takes = ("label_smoothing",)
    rounds_at_one = True

    def operations(self, outputs: int) -> int:
        """Exponentials, their sum, the quotients; the logarithm, the class's own output, the sum over the batch, and
        the class's own gradient. The mean's 1/n is a factor in the learning rate.
        """
        return 3 * outputs + 4

    def value_and_gradient(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """Return both; the maximum is subtracted first."""
        loss, gradient = cross_entropy(outputs, y, rule.label_smoothing)
        return float(loss), gradient

    def each(self, rule: Parameters, outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both of all batches at once."""
        return cross_entropy(outputs, y, rule.label_smoothing)

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Count the samples whose largest output is that of their class."""
        return float((outputs.argmax(axis=1) == y).sum())


def cross_entropy(outputs: np.ndarray, y: np.ndarray, smoothing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over the rows of each of outputs (..., n, classes), and the gradient."""
    n, classes = outputs.shape[-2:]
    # By numbers of rows, whatever they are rows of: numpy finds them a few times faster than by several axes.
    rows, own = np.arange(y.size), y.reshape(-1)
    shifted = (outputs - outputs.max(axis=-1, keepdims=True)).reshape(-1, classes)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1, keepdims=True)
    logarithms = np.log(sums[:, 0])
    loss = (logarithms - shifted[rows, own]).reshape(y.shape).sum(axis=-1) / n
    gradient = exponentials / sums
    if smoothing:
        spread = (logarithms - shifted.mean(axis=1)).reshape(y.shape).sum(axis=-1) / n
        loss = (1 - smoothing) * loss.astype(float) + smoothing * spread.astype(float)
        gradient -= smoothing / classes
    gradient[rows, own] -= 1 - smoothing
    return loss, (gradient / n).reshape(outputs.shape)
