"""The aggregation `krum`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Aggregation, Settings, State, Updates
from transect.federated.aggregations._robust import ATTACKERS, chosen_by_krum, too_few


@AGGREGATIONS.register("krum")
class Krum(Aggregation):
    """One client's update: that which is nearest to the others.

    The update with the least sum of squared distances to its n - attackers - 2 nearest others.

    P. Blanchard et al., "Machine learning with adversaries: Byzantine tolerant gradient descent", NeurIPS 2017, section
    4. Of equal ones the first is taken. Rows do not weigh.
    """

    options = MappingProxyType({"attackers": ATTACKERS})

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that there are fewer than the paper's 2 attackers + 3."""
        return too_few(clients, 2 * int(settings["attackers"]) + 3, settings["attackers"])

    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return the chosen update."""
        (best,) = chosen_by_krum(updates.vectors, int(settings["attackers"]), 1, again=False)
        return np.asarray(updates.vectors[best])
