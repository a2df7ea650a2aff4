"""The method `scaffold`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from transect.domain.options import Value
from transect.federated.methods import METHODS, Method, Terms
from transect.federated.turn import Turn
from transect.training.models import Model
from transect.training.workloads import Parameters


@METHODS.register("scaffold")
class Scaffold(Method):
    """Control variates take out of a client's gradients what is its own: steps are g - c_i + c.

    A client keeps c_i, which becomes c_i - c + (given - end) / (steps rate), and sends its change; the server has c.

    S. P. Karimireddy et al., "SCAFFOLD: stochastic controlled averaging for federated learning", ICML 2020, algorithm 1
    with option II. The paper's clients weigh alike; here rows weigh, as in FedAvg, and in c as well.
    """

    corrects = True
    keeps = True
    meets = True
    vectors = 2

    def refuses(self, settings: Mapping[str, Value], model: Model, parameters: Parameters) -> str | None:
        """A turn's way is its mean gradient times steps and rate in plain SGD alone."""
        if parameters.optimiser != "sgd" or parameters.momentum or parameters.clip_norm is not None:
            return "scaffold takes the mean gradient from a turn's way: expected sgd with momentum 0 and clip_norm null"
        return None

    def turn(self, terms: Terms, turn: Turn, own: np.ndarray, server: np.ndarray) -> Turn:
        return replace(turn, correction=(server - own).astype(own.dtype))

    def kept(self, terms: Terms, turn: Turn, end: np.ndarray, own: np.ndarray, server: np.ndarray) -> np.ndarray:
        way = (turn.given.astype(np.float64) - end) / (terms.steps * terms.rate)
        return np.where(terms.trained, own - server + way, 0).astype(own.dtype)
