"""The aggregation `fedadam`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Settings
from transect.federated.aggregations._server import Adaptive, adaptive_options


@AGGREGATIONS.register("fedadam")
class FedAdam(Adaptive):
    """Adam on the server.

    v = beta_2 v + (1 - beta_2) D^2.

    S. J. Reddi et al., "Adaptive federated optimization", ICLR 2021, algorithm 2.
    """

    options = MappingProxyType(adaptive_options(0.1, 0.9, 0.99))

    def second_moment(self, settings: Settings, before: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return the moving mean of squares."""
        beta = float(settings["beta_2"])
        return beta * before + (1 - beta) * squares
