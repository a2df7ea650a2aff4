"""Stochastic gradient descent with Nesterov's momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.training.optimisers import OPTIMISERS
from transect.training.optimisers.sgd import Sgd

if TYPE_CHECKING:
    from transect.training.workloads import Parameters


@OPTIMISERS.register("nesterov", "nag")
class Nesterov(Sgd):
    """g += weight_decay w; v = momentum v + g; w -= learning_rate (g + momentum v).

    The form of I. Sutskever et al., "On the importance of initialization and momentum in deep
    learning", 2013, written for the weights at which gradients are taken, as torch and Keras do.
    """

    def operations(self, rule: Parameters) -> int:
        """Two more than without the look ahead."""
        return super().operations(rule) + 2 * (rule.momentum > 0)

    def moved(self, rule: Parameters, gradient: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Look ahead."""
        return gradient + rule.momentum * velocity
