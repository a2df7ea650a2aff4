"""The aggregation `fedasync`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.domain.options import Option
from transect.federated.aggregations import AGGREGATIONS, Settings, State
from transect.federated.aggregations._staleness import Discounted, polynomial


@AGGREGATIONS.register("fedasync")
class FedAsync(Discounted):
    """Asynchronous aggregation: each client's model is mixed into the server's as it comes, late ones less.

    w += mixing s(t) (w_i - w), where w is the server's model of now; s in steps of 2^-16.

    C. Xie, S. Koyejo, I. Gupta, "Asynchronous federated optimization", 2019, algorithm 1 and section 5.2: s is
    `constant` 1, `polynomial` (1 + t)^-power, or `hinge`, 1 up to a staleness of `late` and 1 / (slope (t - late) + 1)
    behind it; t is 0 for a client that has the model of now. The paper takes one update at a time; of several at once
    the mean of their steps is taken.
    """

    from_current = True
    options = MappingProxyType(
        {
            "mixing": Option(default=0.6, min=0, description="the share of a client's model in the next, at most 1"),
            "lateness": Option(
                default="polynomial",
                choices=("constant", "polynomial", "hinge"),
                description="how much less late updates count",
            ),
            "power": Option(default=0.5, min=0, description="of the polynomial"),
            "slope": Option(default=10.0, min=0, description="of the hinge"),
            "late": Option(default=4, min=0, description="the staleness up to which the hinge is 1"),
        }
    )

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that more than a client's model would be taken, or that updates are too many."""
        if float(settings["mixing"]) > 1:
            return f"mixing: expected a number from 0 to 1, got {settings['mixing']}"
        return super().complaint(settings, clients)

    def share(self, settings: Settings, staleness: np.ndarray) -> np.ndarray:
        """Return s(t), float64 (n,)."""
        if settings["lateness"] == "polynomial":
            return polynomial(staleness, float(settings["power"]))
        slope = float(settings["slope"]) if settings["lateness"] == "hinge" else 0.0
        return np.asarray(1.0 / (slope * np.maximum(staleness - int(settings["late"]), 0) + 1.0))

    def step(self, settings: Settings, model: np.ndarray, change: np.ndarray, state: State) -> np.ndarray:
        """Return the model plus the mixed share of the change."""
        return model + float(settings["mixing"]) * change
