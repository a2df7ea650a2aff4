"""The aggregation `centred-clipping`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.domain.options import Option
from transect.federated.aggregations import AGGREGATIONS, Aggregation, Settings, State, Updates
from transect.federated.aggregations._robust import in_own_order


@AGGREGATIONS.register("centred-clipping")
class CentredClipping(Aggregation):
    """The mean of updates that were clipped around the aggregate of the round before.

    v += 1/n sum (d_i - v) min(1, radius / |d_i - v|), `iterations` times; v begins at the round before's, at first at 0.

    S. P. Karimireddy, L. He, M. Jaggi, "Learning from history for Byzantine robust optimization", ICML 2021.
    The defaults are of its experiments, on gradients with workers' momentum: an update of a few steps at a small rate is
    much shorter than 10, and clipped by a smaller radius only. Rows do not weigh.
    """

    options = MappingProxyType(
        {
            "radius": Option(default=10.0, min=0, description="how far from v an update may be before it is clipped"),
            "iterations": Option(default=1, min=1, description="times that v is moved in a round"),
        }
    )

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that v would never move."""
        return "radius: expected a number above 0, got 0" if float(settings["radius"]) == 0 else None

    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return v, and keep it."""
        vectors, _ = in_own_order(updates)
        centre = state.get("centre", np.zeros(vectors.shape[1]))
        for _ in range(int(settings["iterations"])):
            away = vectors - centre
            far = np.sqrt(np.square(away).sum(axis=1))
            shares = float(settings["radius"]) / np.maximum(far, float(settings["radius"]))
            # Not by `@`: its rounding depends on the number of threads.
            centre = centre + np.einsum("i,ij->j", shares, away) / len(vectors)
        state["centre"] = centre
        return centre
