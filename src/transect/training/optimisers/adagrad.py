"""Adagrad: the gradient over the root of the sum of its squares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.optimisers import OPTIMISERS, Optimiser

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("adagrad")
class Adagrad(Optimiser):
    """g += weight_decay w; s = s + g^2; w -= learning_rate g / (sqrt(s) + epsilon).

    J. Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization", 2011, with the sum
    beginning at 0, as torch has it.
    """

    states = 1
    takes = ("weight_decay", "epsilon")

    def operations(self, rule: Parameters) -> int:
        """Two for the sum, five for the step, two for the decay."""
        return 7 + 2 * (rule.weight_decay > 0)

    def live_states(self, rule: Parameters) -> int:
        """The sum."""
        return 1

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
        states[0] += np.square(gradient)
        weights -= learning_rate * gradient / (np.sqrt(states[0]) + rule.epsilon)
