"""Turns in pieces, so that memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from transect.federated.engines import Turn, Turned

_PIECE_BYTES = 2**23


def pieces(turns: Iterable[Turn], size: int, dtype: np.dtype) -> Iterator[tuple[list[Turn], Turned]]:
    """Yield turns with room for what they come to: as many as a piece of 8 MB has, of models of `size` numbers."""
    most = max(1, _PIECE_BYTES // max(1, size * dtype.itemsize))
    remaining = iter(turns)
    while piece := list(islice(remaining, most)):
        yield piece, Turned(weights=np.empty((len(piece), size), dtype), losses=np.empty(len(piece)))
