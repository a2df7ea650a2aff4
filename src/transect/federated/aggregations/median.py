"""The aggregation `median`."""

from __future__ import annotations

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Aggregation, Settings, State, Updates


@AGGREGATIONS.register("median")
class Median(Aggregation):
    """The median of each number.

    Of an even count it is the mean of the middle two. Rows do not weigh.

    D. Yin et al., "Byzantine-robust distributed learning: towards optimal statistical rates", ICML 2018, definition 1.
    """

    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return the medians."""
        return np.asarray(np.median(updates.vectors, axis=0))
