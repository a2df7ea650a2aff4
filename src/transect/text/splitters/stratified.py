"""Tickets dealt out by chance, with the classes alike in all parts."""

from __future__ import annotations

import numpy as np

from transect.text.splitters import SPLITTERS, Rows, Splitter
from transect.text.splitters._cuts import cut


@SPLITTERS.register("stratified")
class Stratified(Splitter):
    """By chance, and each part has every class by its share, to within a few tickets."""

    def parts(self, rows: Rows, shares: dict[str, float], generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Spread the tickets of each class evenly over one order, and cut that."""
        places = np.empty(len(rows.labels))
        for label in np.unique(rows.labels):
            members = np.flatnonzero(rows.labels == label)
            # A start by chance: small classes would else all meet in the same part.
            places[members] = (generator.permutation(len(members)) + generator.random()) / len(members)
        return cut(np.argsort(places, kind="stable"), shares)
