"""Tickets dealt out by their age."""

from __future__ import annotations

import numpy as np

from transect.domain.errors import BadInput
from transect.text.partitioners import PARTITIONERS, Partitioner, Rows
from transect.text.partitioners._cuts import cut


@PARTITIONERS.register("time")
class Time(Partitioner):
    """The oldest tickets train, the newest are for devices: no part knows the future of another."""

    def parts(self, rows: Rows, shares: dict[str, float], generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Cut by time; raises BadInput when a ticket has none."""
        if unknown := int(np.isnan(rows.times).sum()):
            raise BadInput(
                f"partitioner time: {unknown} of {len(rows.times)} tickets have no time: expected one for each"
            )
        return cut(np.argsort(rows.times, kind="stable"), shares)
