"""The aggregation `multi-krum`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.domain.options import Option
from transect.federated.aggregations import AGGREGATIONS, Aggregation, Settings, State, Updates
from transect.federated.aggregations._robust import ATTACKERS, chosen_by_krum, too_few
from transect.federated.exact_sum import exact_mean


@AGGREGATIONS.register("multi-krum")
class MultiKrum(Aggregation):
    """The mean of the updates that are nearest to the others.

    The equal mean of the `kept` updates with the best scores of Krum.

    P. Blanchard et al., "Machine learning with adversaries: Byzantine tolerant gradient descent", NeurIPS 2017, where
    it is a variant that leaves the number open; all but the attackers, unless given.
    """

    options = MappingProxyType(
        {
            "attackers": ATTACKERS,
            "kept": Option(default=0, min=0, description="updates that are averaged; 0: all but `attackers`"),
        }
    )

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that there are fewer than the paper's 2 attackers + 3, or that attackers would be kept."""
        attackers, kept = int(settings["attackers"]), int(settings["kept"])
        if kept > clients - attackers:
            return f"kept: expected {clients - attackers} at most of {clients} updates with {attackers} attackers, got {kept}"
        return too_few(clients, 2 * attackers + 3, attackers)

    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return the mean of those that are kept."""
        attackers = int(settings["attackers"])
        kept = int(settings["kept"]) or len(updates.vectors) - attackers
        return exact_mean(updates.vectors[chosen_by_krum(updates.vectors, attackers, kept, again=False)])
