"""Adam with weight decay as a part of the gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.optimisers import OPTIMISERS
from transect.training.optimisers.adamw import AdamW

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("adam")
class Adam(AdamW):
    """g += weight_decay w; then as AdamW without a decay.

    D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", arXiv:1412.6980, algorithm 1. The averages
    see the decay, so its effect on a weight does not grow with the weight.
    """

    def operations(self, rule: Parameters) -> int:
        """Ten, and two for the decay."""
        return 10 + 2 * (rule.weight_decay > 0)

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
        if rule.weight_decay:
            gradient += rule.weight_decay * weights
        self.average(rule, gradient, states)
        self.descend(rule, weights, states, learning_rate, step)
