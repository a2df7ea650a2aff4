"""Tickets dealt out by chance."""

from __future__ import annotations

import numpy as np

from transect.text.splitters import SPLITTERS, Rows, Splitter
from transect.text.splitters._cuts import cut


@SPLITTERS.register("random")
class Random(Splitter):
    """By chance: what a ticket is has no part in it."""

    def parts(self, rows: Rows, shares: dict[str, float], generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Cut one permutation."""
        return cut(generator.permutation(len(rows.labels)), shares)
