"""The aggregation `fedbuff`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.domain.options import Option
from transect.federated.aggregations import AGGREGATIONS, Settings, State
from transect.federated.aggregations._server import server_rate
from transect.federated.aggregations._staleness import Discounted


@AGGREGATIONS.register("fedbuff")
class FedBuff(Discounted):
    """Buffered asynchronous aggregation: a step for every so many updates, late ones count less.

    w += server_rate / K sum s(t_i) d_i over the K updates of the buffer, s = (1 + t)^-power in steps of 2^-16.

    J. Nguyen et al., "Federated learning with buffered asynchronous aggregation", AISTATS 2022, algorithm 1: the sum is
    divided by K, not by the sum of s, and rows do not weigh. The power is that of its experiments.
    """

    options = MappingProxyType(
        {
            "server_rate": server_rate(),
            "power": Option(default=0.5, min=0, description="how much less late updates count: s = (1 + t)^-power"),
        }
    )

    def step(self, settings: Settings, model: np.ndarray, change: np.ndarray, state: State) -> np.ndarray:
        """Return the model plus the change times the rate."""
        return model + float(settings["server_rate"]) * change
