"""Tickets dealt out by chance."""

from __future__ import annotations

import numpy as np

from transect.text.partitioners import PARTITIONERS, Partitioner, Rows
from transect.text.partitioners._cuts import cut


@PARTITIONERS.register("random")
class Random(Partitioner):
    """By chance: what a ticket is has no part in it."""

    def parts(self, rows: Rows, shares: dict[str, float], generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Cut one permutation."""
        return cut(generator.permutation(len(rows.labels)), shares)
