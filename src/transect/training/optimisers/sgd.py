"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.optimisers import OPTIMISERS, Optimiser

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("sgd")
class Sgd(Optimiser):
    """g += weight_decay w; v = momentum v + g; w -= learning_rate v.

    A framework whose v holds learning_rate g must rescale v when the learning rate changes.
    """

    states = 1
    takes = ("momentum", "weight_decay")

    def operations(self, rule: Parameters) -> int:
        """Two for the step, two more for the velocity, two for the decay."""
        return 2 + 2 * (rule.momentum > 0) + 2 * (rule.weight_decay > 0)

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
            gradient = self.moved(rule, gradient, velocity)
        weights -= learning_rate * gradient

    def moved(self, rule: Parameters, gradient: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Return what the weights move along, at a momentum."""
        return velocity
