"""The aggregation `fedadagrad`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Settings
from transect.federated.aggregations._server import Adaptive, adaptive_options


@AGGREGATIONS.register("fedadagrad")
class FedAdagrad(Adaptive):
    """Adagrad on the server.

    v += D^2. beta_1 is 0 as in the paper's experiments.

    S. J. Reddi et al., "Adaptive federated optimization", ICLR 2021, algorithm 2.
    """

    options = MappingProxyType(adaptive_options(0.1, 0.0, None))

    def second_moment(self, settings: Settings, before: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return the sum of squares."""
        return np.asarray(before + squares)
