"""Aggregations: what a server makes of its clients' updates. One file each, numpy alone, in float64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from transect.domain.axes.federate import Federation
from transect.domain.errors import BadInput, WrongResult
from transect.domain.options import Option, Value, settings
from transect.domain.registry import Plugin, Registry
from transect.federated.exact_sum import MAX_WEIGHT, ExactSum, refuse_unusable

__all__ = ["AGGREGATIONS", "Aggregation", "Settings", "State", "Summed", "Updates"]

Settings = Mapping[str, Value]
# What an aggregation keeps from round to round, by name: float64 (d,).
State = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class Updates:
    """What n clients sent, in the order of their turns: one at least.

    `vectors`: float64 (n, d), the model after a client's turn minus the model that it was given, all weights in one
    vector. `counts`: int64 (n,), rows that it learned from. `staleness`: int64 (n,), how many updates the server made
    since the client was given its model; 0 where rounds are synchronous.

    What no rule could use is refused here, for all of them: WrongResult for a number that is not finite or from
    `exact_sum.LIMIT` on, a count that is not from 1 to `MAX_WEIGHT`, a staleness below 0, and other shapes or types.
    """

    vectors: np.ndarray
    counts: np.ndarray
    staleness: np.ndarray

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.vectors) or self.vectors.dtype != np.float64:
            raise WrongResult(
                f"updates: expected float64 (n, d) of one client at least, got {self.vectors.dtype} {self.vectors.shape}"
            )
        for name, given, least in (("counts", self.counts, 1), ("staleness", self.staleness, 0)):
            if given.dtype != np.int64 or given.shape != self.vectors.shape[:1]:
                raise WrongResult(
                    f"{name} of updates: expected int64 ({len(self.vectors)},), got {given.dtype} {given.shape}"
                )
            if given.min() < least or given.max() > MAX_WEIGHT:
                wrong = next(int(one) for one in given if not least <= one <= MAX_WEIGHT)
                raise WrongResult(f"{name} of updates: expected {least} to {MAX_WEIGHT}, got {wrong}")
        refuse_unusable(self.vectors)


class Aggregation(Plugin, ABC):
    """One rule, which sees each update of a round. One that needs no more than their sum is `Summed`."""

    # Its options, by name.
    options: Mapping[str, Option] = MappingProxyType({})
    # Whether vectors are the clients' models minus the server's of now, not minus the one that they were given.
    from_current: bool = False

    def supports(self, cell: Federation) -> str | None:
        """Return the complaint about a cell's settings and updates, or None."""
        return self.complaint(settings(self.options, cell.options), cell.buffer or cell.cohort)

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return what is wrong with settings that have the right types, or with so many updates at once, or None."""
        return None

    @abstractmethod
    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return the change of the model that a round's updates stand for, float64 (d,)."""

    def step(self, settings: Settings, model: np.ndarray, change: np.ndarray, state: State) -> np.ndarray:
        """Return the next model, float64 (d,); `state` is empty at first, and changed in place."""
        return np.asarray(model + change)

    def combine(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return `change`, where there is no `complaint`; called by what runs rounds, and the same for all rules.

        Raises BadInput with the complaint.
        """
        if complaint := self.complaint(settings, len(updates.vectors)):
            raise BadInput(complaint)
        # A zero has no sign: that of a sorted column's middle would depend on the order of clients.
        return self.change(settings, updates, state) + 0.0


class Summed(Aggregation):
    """A rule that takes a weighted mean: updates are added as they come, and none is kept.

    `weights` are whole numbers, so that the sum is exact (`exact_sum`). What adds updates in pieces makes its own
    `ExactSum`, and takes `mean` of it.
    """

    def weights(self, settings: Settings, counts: np.ndarray, staleness: np.ndarray) -> np.ndarray:
        """Return what each update counts, int64 (n,); the rows that it learned from, unless a rule says otherwise."""
        return counts

    def mean(self, settings: Settings, total: ExactSum) -> np.ndarray:
        """Return what a sum of all updates stands for, float64 (d,): over the sum of weights, unless a rule differs."""
        return total.mean(total.weight)

    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return the mean."""
        total = ExactSum(updates.vectors.shape[1])
        total.add(updates.vectors, self.weights(settings, updates.counts, updates.staleness))
        return self.mean(settings, total)


AGGREGATIONS: Registry[Aggregation] = Registry("aggregation", "transect.federated.aggregations", Aggregation)
