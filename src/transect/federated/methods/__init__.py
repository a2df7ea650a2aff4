"""Methods: what a client does besides plain local steps, and what it keeps. One file each, numpy alone."""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from transect.domain.axes.federate import Federation
from transect.domain.options import Option, Value
from transect.domain.registry import Plugin, Registry
from transect.federated.turn import Turn
from transect.training.models import Model
from transect.training.workloads import Parameters

__all__ = ["METHODS", "Method", "Terms"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What a method is told of a federation.

    `settings`: every option of the method with its value. `rate` is the learning rate, `steps` those of a turn.
    `trained`, bool (d,): what steps change of the model's vector. `personal`, bool (d,): what stays with each client.
    """

    settings: Mapping[str, Value]
    rate: float
    steps: int
    trained: np.ndarray
    personal: np.ndarray


class Method(Plugin, ABC):
    """Turns of a method. Vectors are like the model's, (d,), in its precision; `server` alone is float64.

    Where it `keeps`, each client has a vector `own` from turn to turn. It is never sent: an update is the model after
    the turn minus the one that the turn began with, and 0 where tensors are `personal`. Where it `meets` as well, the
    server has `server`, the mean of what all clients keep, weighted by their rows: it adds up what changes.
    """

    # Its options, by name.
    options: Mapping[str, Option] = MappingProxyType({})
    # Whether steps get a `mu`, and whether they get a `correction`: what an engine must have.
    pulls: bool = False
    corrects: bool = False
    # Whether clients keep a vector, and whether the server has the mean of all.
    keeps: bool = False
    meets: bool = False
    # Whether what a client keeps comes of a second turn, `own_turn`.
    second: bool = False
    # Whether each client uses a model of its own, `model_of`, and is scored by that.
    personalises: bool = False
    # How many vectors like the model go each way for a turn.
    vectors: int = 1

    def supports(self, cell: Federation) -> str | None:
        """Return why the cell cannot run, or None; where clients keep something, that is a server that does not wait for all."""
        if self.keeps and cell.buffer is not None:
            return f"clients of {cell.method} keep something from round to round: expected buffers null"
        return None

    def refuses(self, settings: Mapping[str, Value], model: Model, parameters: Parameters) -> str | None:
        """Return what it cannot do with settings that have the right types, or with a federation of clients, or None."""
        return None

    def personal(self, settings: Mapping[str, Value], model: Model) -> Collection[str]:
        """Return the names of the tensors that stay with each client."""
        return ()

    def at_rest(self, terms: Terms, start: np.ndarray) -> np.ndarray:
        """Return what a client keeps before its first turn, given the first model."""
        return np.zeros_like(start)

    def turn(self, terms: Terms, turn: Turn, own: np.ndarray, server: np.ndarray) -> Turn:
        """Return the turn whose update is sent, given that of plain local steps."""
        return turn

    def own_turn(self, terms: Terms, turn: Turn, own: np.ndarray) -> Turn:
        """Return the second turn, given that of plain local steps."""
        return turn

    def kept(self, terms: Terms, turn: Turn, end: np.ndarray, own: np.ndarray, server: np.ndarray) -> np.ndarray:
        """Return what a client keeps after a turn, its second one if it has one, that came to the model `end`."""
        return own

    def change(self, terms: Terms, change: np.ndarray, server: np.ndarray) -> np.ndarray:
        """Return the change of the model, float64 (d,), given that of the aggregation and the mean of after the turns."""
        return change

    def model_of(self, terms: Terms, model: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return the model that a client uses, given the server's."""
        return model


METHODS: Registry[Method] = Registry("method", "transect.federated.methods", Method)
