"""The aggregation `fedyogi`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Settings
from transect.federated.aggregations._server import Adaptive, adaptive_options


@AGGREGATIONS.register("fedyogi")
class FedYogi(Adaptive):
    """Yogi on the server.

    v -= (1 - beta_2) D^2 sign(v - D^2).

    S. J. Reddi et al., "Adaptive federated optimization", ICLR 2021, algorithm 2.
    """

    options = MappingProxyType(adaptive_options(0.01, 0.9, 0.99))

    def second_moment(self, settings: Settings, before: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return v, which moves by a share of the squares towards them."""
        return np.asarray(before - (1 - float(settings["beta_2"])) * squares * np.sign(before - squares))
