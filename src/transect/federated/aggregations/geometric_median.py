"""The aggregation `geometric-median`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.domain.options import Option
from transect.federated.aggregations import AGGREGATIONS, Aggregation, Settings, State, Updates
from transect.federated.aggregations._robust import in_own_order
from transect.federated.exact_sum import exact_mean


@AGGREGATIONS.register("geometric-median")
class GeometricMedian(Aggregation):
    """The point with the least sum of distances to all updates.

    The point z with the least sum of n_i |d_i - z|, found from the weighted mean on by smoothed Weiszfeld: z is the mean
    of d_i with the weights n_i / max(smoothing, |d_i - z|) of the z before.

    K. Pillutla, S. M. Kakade, Z. Harchaoui, "Robust aggregation for federated learning", IEEE Transactions on Signal
    Processing 70, 2022, algorithm 2 (RFA). The paper ends after 3 passes, each of which costs it a secure sum; with a
    share r of attackers' rows a pass leaves r / (1 - r) of what a far attack moves, so here it goes on until a pass
    moves z by no more than `tolerance`.
    """

    options = MappingProxyType(
        {
            "smoothing": Option(default=1e-6, min=0, description="the least distance that counts"),
            "iterations": Option(default=100, min=1, description="passes at most"),
            "tolerance": Option(default=1e-9, min=0, description="how far the last pass may have moved"),
        }
    )

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that an update at the point itself would have a weight without end."""
        return "smoothing: expected a number above 0, got 0" if float(settings["smoothing"]) == 0 else None

    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return the geometric median."""
        vectors, counts = in_own_order(updates)
        point = exact_mean(vectors, counts)
        for _ in range(int(settings["iterations"])):
            away = vectors - point
            weights = counts / np.maximum(float(settings["smoothing"]), np.sqrt(np.square(away).sum(axis=1)))
            # Not by `@`: its rounding depends on the number of threads.
            moved = np.einsum("i,ij->j", weights / weights.sum(), away)
            point += moved
            if np.sqrt(np.square(moved).sum()) <= float(settings["tolerance"]):
                break
        return point
