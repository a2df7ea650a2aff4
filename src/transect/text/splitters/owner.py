"""The tickets of the rarest owners for devices."""

from __future__ import annotations

import numpy as np

from transect.domain.errors import BadInput
from transect.text.splitters import SPLITTERS, Rows, Splitter
from transect.text.splitters._cuts import cut


@SPLITTERS.register("owner")
class Owner(Splitter):
    """By how frequent owners are: the rarest are for devices, and other parts are dealt by chance.

    So a device sees owners that hardly train, or not at all. Clients get whole owners, but for those
    at a cut.
    """

    def parts(self, rows: Rows, shares: dict[str, float], generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Raises BadInput when a ticket has no owner, or no share is for devices."""
        if unknown := int((rows.owners < 0).sum()):
            raise BadInput(
                f"splitter owner: {unknown} of {len(rows.owners)} tickets have no owner: expected one for each"
            )
        if "on_device" not in shares:
            raise BadInput("splitter owner: no share `on_device`: it is for the rarest owners")
        _, numbers, counts = np.unique(rows.owners, return_inverse=True, return_counts=True)
        # By chance first: which tickets of an owner at the cut are for devices is not by their age.
        order = generator.permutation(len(numbers))
        order = order[np.lexsort((numbers[order], -counts[numbers[order]]))]
        others = {part: share for part, share in shares.items() if part != "on_device"}
        n = len(order)
        # Where both would be rounded up, one ticket is the others'.
        kept = max(n - round(shares["on_device"] * n), round(sum(others.values()) * n))
        order[:kept] = generator.permutation(order[:kept])
        return cut(order, others) | {"on_device": order[kept:]}
