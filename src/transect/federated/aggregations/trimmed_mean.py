"""The aggregation `trimmed-mean`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Aggregation, Settings, State, Updates
from transect.federated.aggregations._robust import ATTACKERS, too_few
from transect.federated.exact_sum import exact_mean


@AGGREGATIONS.register("trimmed-mean")
class TrimmedMean(Aggregation):
    """The mean of each number without its largest and smallest.

    The `attackers` largest and smallest are left out, for each number by itself. Rows do not weigh.

    D. Yin et al., "Byzantine-robust distributed learning: towards optimal statistical rates", ICML 2018, definition 2,
    where a share beta of all is cut at either end.
    """

    options = MappingProxyType({"attackers": ATTACKERS})

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that nothing would be left."""
        return too_few(clients, 2 * int(settings["attackers"]) + 1, settings["attackers"])

    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return the means of what is left."""
        cut = int(settings["attackers"])
        return exact_mean(np.sort(updates.vectors, axis=0)[cut : len(updates.vectors) - cut])
