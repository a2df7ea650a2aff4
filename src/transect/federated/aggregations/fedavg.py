"""The aggregation `fedavg`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Settings, State, Summed
from transect.federated.aggregations._server import server_rate


@AGGREGATIONS.register("fedavg")
class FedAvg(Summed):
    """Federated averaging: the mean of the clients' models, weighted by their rows.

    w += server_rate sum n_i d_i / sum n_i.

    H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
    algorithm 1, where the rate is 1.
    """

    options = MappingProxyType({"server_rate": server_rate()})

    def step(self, settings: Settings, model: np.ndarray, change: np.ndarray, state: State) -> np.ndarray:
        """Return the model plus the change times the rate."""
        return model + float(settings["server_rate"]) * change
