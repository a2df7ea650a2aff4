"""LAMB: Adam whose step is scaled to the norm of each weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.optimisers import OPTIMISERS
from transect.training.optimisers.adamw import AdamW

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("lamb")
class Lamb(AdamW):
    """u = m' / (sqrt(v') + epsilon) + weight_decay w; w -= learning_rate (|w| / |u|) u, for each weight's array by itself.

    m' and v' are those of AdamW; where a norm is 0 the ratio is 1 (Y. You et al., "Large batch optimization for deep
    learning", arXiv:1904.00962, algorithm 2, with phi(z) = z).
    """

    by_array = True

    def operations(self, rule: Parameters) -> int:
        """Five for the averages, three for Adam's step, four for both norms, two for the update; two for the decay."""
        return 14 + 2 * (rule.weight_decay > 0)

    def update(
        self,
        rule: Parameters,
        weights: np.ndarray,
        gradient: np.ndarray,
        states: list[np.ndarray],
        learning_rate: float,
        step: int,
    ) -> None:
        """Apply the rule."""
        self.average(rule, gradient, states)
        first, second = states
        root = np.sqrt(second / (1 - rule.beta2**step)) + rule.epsilon
        along = first / (1 - rule.beta1**step) / root
        if rule.weight_decay:
            along += rule.weight_decay * weights
        size, length = (float(np.sqrt(np.square(array).sum())) for array in (weights, along))
        weights -= (learning_rate * (size / length if size and length else 1.0)) * along
