"""Aggregations: what a server makes of its clients' updates. One file each, numpy alone, in float64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from transect.domain.options import Option, Value
from transect.domain.registry import Plugin, Registry

__all__ = ["AGGREGATIONS", "Aggregation", "Settings", "Summed", "Updates"]

Settings = Mapping[str, Value]
# What an aggregation keeps from round to round, by name: float64 (d,).
State = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class Updates:
    """What n clients sent, in the order of their turns.

    `vectors`: float64 (n, d), the model after a client's turn minus the model that it was given, all weights in one
    vector. `counts`: int64 (n,), rows that it learned from. `staleness`: int64 (n,), how many updates the server made
    since the client was given its model; 0 where rounds are synchronous.
    """

    vectors: np.ndarray
    counts: np.ndarray
    staleness: np.ndarray


class Aggregation(Plugin, ABC):
    """One rule, which sees each update of a round. One that needs no more than their sum is `Summed`."""

    # By name.
    options: Mapping[str, Option] = MappingProxyType({})
    # Whether vectors are the clients' models minus the server's of now, not minus the one that they were given.
    from_current: bool = False

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return why so many updates in a round are too few for it, or None."""
        return None

    @abstractmethod
    def combine(self, settings: Settings, updates: Updates) -> np.ndarray:
        """Return the change of the model that a round's updates stand for, float64 (d,)."""

    def step(self, settings: Settings, model: np.ndarray, change: np.ndarray, state: State) -> np.ndarray:
        """Return the next model, float64 (d,); `state` is empty at first, and changed in place."""
        return model + change


class Summed(Aggregation):
    """A rule that takes a weighted mean: updates are added as they come, and none is kept.

    `weights` are whole numbers, so that the sum is exact (`exact_sum`).
    """

    def weights(self, settings: Settings, counts: np.ndarray, staleness: np.ndarray) -> np.ndarray:
        """Return what each update counts, int64 (n,); the rows that it learned from, unless a rule says otherwise."""
        return counts

    def combine(self, settings: Settings, updates: Updates) -> np.ndarray:
        """Return the weighted mean."""
        from transect.federated.exact_sum import ExactSum

        total = ExactSum(updates.vectors.shape[1])
        total.add(updates.vectors, self.weights(settings, updates.counts, updates.staleness))
        return total.mean()


AGGREGATIONS: Registry[Aggregation] = Registry("aggregation", "transect.federated.aggregations", Aggregation)
