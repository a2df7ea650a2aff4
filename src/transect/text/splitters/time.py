"""Tickets dealt out by their age."""

from __future__ import annotations

import numpy as np

from transect.domain.errors import BadInput
from transect.text.splitters import SPLITTERS, Rows, Splitter
from transect.text.splitters._cuts import cut


@SPLITTERS.register("time")
class Time(Splitter):
    """The oldest tickets train, the newest are for devices: no part knows the future of another."""

    def parts(self, rows: Rows, shares: dict[str, float], generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Cut by time; raises BadInput when a ticket has none."""
        if unknown := int(np.isnan(rows.times).sum()):
            raise BadInput(f"splitter time: {unknown} of {len(rows.times)} tickets have no time: expected one for each")
        return cut(np.argsort(rows.times, kind="stable"), shares)
