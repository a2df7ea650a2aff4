"""Adam with decoupled weight decay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.optimisers import OPTIMISERS, Optimiser

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("adamw")
class AdamW(Optimiser):
    """m and v average g and g^2 with beta1 and beta2; the update does not scale with the gradient.

    w -= learning_rate weight_decay w; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
    w -= learning_rate m' / (sqrt(v') + epsilon), where m' = m / (1 - beta1^t) and
    v' = v / (1 - beta2^t) (I. Loshchilov and F. Hutter, "Decoupled weight decay regularization",
    arXiv:1711.05101, algorithm 2; its schedule multiplier is the learning rate). `momentum` is
    not used. Frameworks that add epsilon to sqrt(v) instead are given epsilon sqrt(1 - beta2^t).
    """

    states = 2
    takes = ("weight_decay", "beta1", "beta2", "epsilon")

    def operations(self, rule: Parameters) -> int:
        """Ten, and one for the decay, in the form that needs the fewest.

        Averages kept without their factors 1 - beta: m = beta1 m + g (2), v = beta2 v + g^2 (3);
        w -= c m / (sqrt(v) + e) (5), all corrections in c and e.
        """
        return 10 + (rule.weight_decay > 0)

    def live_states(self, rule: Parameters) -> int:
        """Both averages."""
        return 2

    def update(
        self,
        rule: Parameters,
        weights: np.ndarray,
        gradient: np.ndarray,
        states: list[np.ndarray],
        learning_rate: float,
        step: int,
    ) -> None:
        """Apply the rule; bias corrections are in Python's float64, whatever the arrays are."""
        if rule.weight_decay:
            weights *= 1 - learning_rate * rule.weight_decay
        self.average(rule, gradient, states)
        self.descend(rule, weights, states, learning_rate, step)

    def average(self, rule: Parameters, gradient: np.ndarray, states: list[np.ndarray]) -> None:
        """Move both averages."""
        first, second = states
        first *= rule.beta1
        first += (1 - rule.beta1) * gradient
        second *= rule.beta2
        second += (1 - rule.beta2) * np.square(gradient)

    def descend(
        self, rule: Parameters, weights: np.ndarray, states: list[np.ndarray], learning_rate: float, step: int
    ) -> None:
        """Move the weights along the corrected averages."""
        first, second = states
        root = np.sqrt(second / (1 - rule.beta2**step)) + rule.epsilon
        weights -= (learning_rate / (1 - rule.beta1**step)) * first / root
