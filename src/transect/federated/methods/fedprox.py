"""The method `fedprox`."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from transect.domain.options import Option
from transect.federated.methods import METHODS, Method, Terms
from transect.federated.turn import Turn


@METHODS.register("fedprox")
class FedProx(Method):
    """A client is pulled back to the model that it was given: gradients are g + mu (w - given).

    T. Li et al., "Federated optimization in heterogeneous networks", MLSys 2020, algorithm 2.
    """

    options = MappingProxyType({"mu": Option(default=0.1, min=0, description="how strong the pull is; 0: plain steps")})
    pulls = True

    def turn(self, terms: Terms, turn: Turn, own: np.ndarray, server: np.ndarray) -> Turn:
        return replace(turn, mu=float(terms.settings["mu"]))
