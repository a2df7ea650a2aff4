"""The method `fedper`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from transect.domain.options import Option, Value
from transect.federated.methods import METHODS, Method, Terms
from transect.federated.turn import Turn
from transect.training.models import Model
from transect.training.workloads import Parameters


@METHODS.register("fedper")
class FedPer(Method):
    """Tensors of the last layers, or of those that are named, are each client's own: it trains them, and sends the others.

    M. G. Arivazhagan et al., "Federated learning with personalization layers", 2019. The paper's clients draw the
    tensors that are their own to begin with; here all begin with those of the first model.
    """

    options = MappingProxyType(
        {
            "layers": Option(
                default=1, min=1, description="of how many of the last layers that have tensors, where none are named"
            ),
            "tensors": Option(
                default="none", description="names of layers or tensors, joined by a space: `5` or `5.weight 5.bias`"
            ),
        }
    )
    keeps = True
    personalises = True

    def refuses(self, settings: Mapping[str, Value], model: Model, parameters: Parameters) -> str | None:
        """Return which name is of no tensor, or that nothing that is trained is left to send."""
        names = [weight.name for weight in model.weight_shapes()]
        for given in str(settings["tensors"]).split() if settings["tensors"] != "none" else ():
            if not any(_within(name, given) for name in names):
                return f"tensors: '{given}' is no layer or tensor of the model, which has {', '.join(names)}"
        mine = self.personal(settings, model)
        if not mine:
            return f"tensors: expected names of layers or tensors, got {settings['tensors']!r}"
        if all(weight.name in mine for weight in model.weight_shapes() if weight.trained):
            return f"layers, tensors: all {len(names)} tensors stay with clients, and none is left to learn together"
        return None

    def personal(self, settings: Mapping[str, Value], model: Model) -> Collection[str]:
        names = [weight.name for weight in model.weight_shapes()]
        if settings["tensors"] == "none":
            layers = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
            given = layers[-int(settings["layers"]) :]
        else:
            given = str(settings["tensors"]).split()
        return {name for name in names if any(_within(name, one) for one in given)}

    def at_rest(self, terms: Terms, start: np.ndarray) -> np.ndarray:
        return np.where(terms.personal, start, 0)

    def turn(self, terms: Terms, turn: Turn, own: np.ndarray, server: np.ndarray) -> Turn:
        return replace(turn, given=self.model_of(terms, turn.given, own))

    def kept(self, terms: Terms, turn: Turn, end: np.ndarray, own: np.ndarray, server: np.ndarray) -> np.ndarray:
        return np.where(terms.personal, end, 0)

    def model_of(self, terms: Terms, model: np.ndarray, own: np.ndarray) -> np.ndarray:
        return np.where(terms.personal, own, model)


def _within(name: str, given: str) -> bool:
    return name == given or name.startswith(f"{given}.")
