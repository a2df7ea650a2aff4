"""Stochastic gradient descent with Nesterov's momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.optimisers import OPTIMISERS, Optimiser

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("nesterov")
class Nesterov(Optimiser):
    """g += weight_decay w; v = momentum v + g; w -= learning_rate (g + momentum v).

    The form of I. Sutskever et al., "On the importance of initialization and momentum in deep
    learning", 2013, written for the weights at which gradients are taken, as torch and Keras do.
    """

    states = 1
    takes = ("momentum", "weight_decay")

    def operations(self, rule: Parameters) -> int:
        """Two for the step, two for the velocity, two for the look ahead, two for the decay."""
        return 2 + 4 * (rule.momentum > 0) + 2 * (rule.weight_decay > 0)

    def live_states(self, rule: Parameters) -> int:
        """Return the velocity's number."""
        return int(rule.momentum > 0)

    def update(
        self,
        rule: Parameters,
        weights: np.ndarray,
        gradient: np.ndarray,
        states: list[np.ndarray],
        learning_rate: float,
        step: int,
    ) -> None:
        """Apply the rule; without momentum the velocity stays zero."""
        velocity = states[0]
        if rule.weight_decay:
            gradient += rule.weight_decay * weights
        if rule.momentum:
            velocity *= rule.momentum
            velocity += gradient
            gradient = gradient + rule.momentum * velocity
        weights -= learning_rate * gradient
