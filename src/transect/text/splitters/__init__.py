"""Splitters: by what tickets are dealt out. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from transect.domain.registry import Plugin, Registry

__all__ = ["SPLITTERS", "Rows", "Splitter"]


class Rows:
    """What a splitter may use, an entry for each ticket: `labels` (n,) class numbers,
    `times` (n,) seconds since 1970 with NaN where none is known, `owners` (n,) numbers, -1 for none.
    """

    def __init__(self, labels: np.ndarray, times: np.ndarray, owners: np.ndarray) -> None:
        self.labels, self.times, self.owners = labels, times, owners


class Splitter(Plugin, ABC):
    """Puts tickets in an order that is then cut into parts."""

    @abstractmethod
    def parts(self, rows: Rows, shares: dict[str, float], generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Return the rows of each part, by the names of `shares`, none twice.

        Raises BadInput naming what the tickets lack, such as times.
        """


SPLITTERS: Registry[Splitter] = Registry("splitter", "transect.text.splitters", Splitter)
