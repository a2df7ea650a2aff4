"""The aggregation `bulyan`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from transect.federated.aggregations import AGGREGATIONS, Aggregation, Settings, State, Updates
from transect.federated.aggregations._robust import ATTACKERS, chosen_by_krum, too_few
from transect.federated.exact_sum import exact_mean


@AGGREGATIONS.register("bulyan")
class Bulyan(Aggregation):
    """Krum again and again, then the mean of each number's middle.

    Krum chooses n - 2 attackers updates, one after another; the mean of the n - 4 attackers numbers nearest to their
    median is taken, for each number by itself.

    E. M. El Mhamdi, R. Guerraoui, S. Rouault, "The hidden vulnerability of distributed learning in Byzantium", ICML
    2018, section 4. Krum's neighbours are counted anew among those that are left, 1 at least. Of two numbers as far
    from the median the smaller is nearer. Rows do not weigh. Two that are each other's one neighbour have equal scores,
    so with 1 or 2 attackers the last choices depend on the order of turns.
    """

    options = MappingProxyType({"attackers": ATTACKERS})

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that there are fewer than the paper's 4 attackers + 3."""
        return too_few(clients, 4 * int(settings["attackers"]) + 3, settings["attackers"])

    def change(self, settings: Settings, updates: Updates, state: State) -> np.ndarray:
        """Return the means."""
        count, attackers = len(updates.vectors), int(settings["attackers"])
        chosen = chosen_by_krum(updates.vectors, attackers, count - 2 * attackers, again=True)
        numbers = np.sort(updates.vectors[chosen], axis=0)
        away = np.abs(numbers - np.median(numbers, axis=0))
        nearest = np.argsort(away, axis=0, kind="stable")[: count - 4 * attackers]
        return exact_mean(np.take_along_axis(numbers, nearest, axis=0))
