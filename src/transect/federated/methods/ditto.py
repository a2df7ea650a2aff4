"""The method `ditto`."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from transect.domain.options import Option
from transect.federated.methods import METHODS, Method, Terms
from transect.federated.turn import Turn


@METHODS.register("ditto")
class Ditto(Method):
    """Beside the plain turn each client trains a model of its own, pulled to the one that it was given.

    Its own steps are g + mu (v - given), from where v was, with the rows of the plain turn.

    T. Li et al., "Ditto: fair and robust federated learning through personalization", ICML 2021, algorithm 1, where mu is
    called lambda.
    """

    options = MappingProxyType(
        {"mu": Option(default=0.1, min=0, description="how strong the pull is; 0: clients alone")}
    )
    pulls = True
    keeps = True
    second = True
    personalises = True

    def at_rest(self, terms: Terms, start: np.ndarray) -> np.ndarray:
        return start

    def own_turn(self, terms: Terms, turn: Turn, own: np.ndarray) -> Turn:
        return replace(turn, given=own, anchor=turn.given, mu=float(terms.settings["mu"]))

    def kept(self, terms: Terms, turn: Turn, end: np.ndarray, own: np.ndarray, server: np.ndarray) -> np.ndarray:
        return end

    def model_of(self, terms: Terms, model: np.ndarray, own: np.ndarray) -> np.ndarray:
        return own
