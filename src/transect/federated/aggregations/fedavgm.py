"""The aggregation `fedavgm`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Settings, State, Summed
from transect.federated.aggregations._server import momentum, not_below_one, server_rate


@AGGREGATIONS.register("fedavgm")
class FedAvgM(Summed):
    """Federated averaging with momentum on the server.

    v = momentum v + mean, w += server_rate v; v begins at 0.

    T.-M. H. Hsu, H. Qi, M. Brown, "Measuring the effects of non-identical data distribution for federated visual
    classification", 2019, section 3: v = beta v + D, w -= v, where D points the other way and the rate is 1.
    """

    options = MappingProxyType({"server_rate": server_rate(), "momentum": momentum(0.9, "the share of v that is kept")})

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that the momentum is not below 1."""
        return not_below_one(settings, "momentum")

    def step(self, settings: Settings, model: np.ndarray, change: np.ndarray, state: State) -> np.ndarray:
        """Return the model after the server's step."""
        state["momentum"] = float(settings["momentum"]) * state.get("momentum", np.zeros_like(change)) + change
        return model + float(settings["server_rate"]) * state["momentum"]
