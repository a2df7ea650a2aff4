"""RMSprop: the gradient over the root of its average square."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.optimisers import OPTIMISERS, Optimiser

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("rmsprop")
class RmsProp(Optimiser):
    """g += weight_decay w; a = alpha a + (1 - alpha) g^2; v = momentum v + g / (sqrt(a) + epsilon); w -= learning_rate v.

    T. Tieleman and G. Hinton, "Lecture 6.5 - RMSprop", 2012, in torch's form, not centred. Frameworks that take the
    root of a + epsilon do not compute this rule.
    """

    states = 2
    takes = ("momentum", "weight_decay", "alpha", "epsilon")

    def operations(self, rule: Parameters) -> int:
        """Three for the average, which is kept without its factor 1 - alpha, five for the step; momentum, decay."""
        return 8 + 2 * (rule.momentum > 0) + 2 * (rule.weight_decay > 0)

    def live_states(self, rule: Parameters) -> int:
        """The average, and the velocity."""
        return 1 + (rule.momentum > 0)

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
        average, velocity = states
        if rule.weight_decay:
            gradient += rule.weight_decay * weights
        average *= rule.alpha
        average += (1 - rule.alpha) * np.square(gradient)
        gradient /= np.sqrt(average) + rule.epsilon
        if rule.momentum:
            velocity *= rule.momentum
            velocity += gradient
            gradient = velocity
        weights -= learning_rate * gradient
