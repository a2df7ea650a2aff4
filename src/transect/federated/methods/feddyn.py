"""The method `feddyn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from transect.domain.options import Option, Value
from transect.federated.methods import METHODS, Method, Terms
from transect.federated.turn import Turn
from transect.training.models import Model
from transect.training.workloads import Parameters


@METHODS.register("feddyn")
class FedDyn(Method):
    """Each client's loss is regularised so that all of them end at the same model: steps are g - g_i + alpha (w - given).

    A client keeps g_i, the gradient of its loss where it was, which becomes g_i - alpha (end - given). The server has
    their mean h, which it needs no more than the updates for, and takes h / alpha from the mean of the models.

    D. A. E. Acar et al., "Federated learning based on dynamic regularization", ICLR 2021, algorithm 1. The paper's
    clients weigh alike; here rows weigh, as in FedAvg, and in h as well.
    """

    options = MappingProxyType(
        {"alpha": Option(default=0.1, min=0, description="how strong the regularisation is; above 0")}
    )
    pulls = True
    corrects = True
    keeps = True
    meets = True

    def refuses(self, settings: Mapping[str, Value], model: Model, parameters: Parameters) -> str | None:
        return None if float(settings["alpha"]) else "feddyn divides by alpha: expected a number above 0, got 0"

    def turn(self, terms: Terms, turn: Turn, own: np.ndarray, server: np.ndarray) -> Turn:
        return replace(turn, mu=float(terms.settings["alpha"]), correction=-own)

    def kept(self, terms: Terms, turn: Turn, end: np.ndarray, own: np.ndarray, server: np.ndarray) -> np.ndarray:
        way = float(terms.settings["alpha"]) * (end.astype(np.float64) - turn.given)
        return np.where(terms.trained, own - way, 0).astype(own.dtype)

    def change(self, terms: Terms, change: np.ndarray, server: np.ndarray) -> np.ndarray:
        return change - server / float(terms.settings["alpha"])
