"""Cutting an order of tickets into parts."""

from __future__ import annotations

import numpy as np


def cut(order: np.ndarray, shares: dict[str, float]) -> dict[str, np.ndarray]:
    """Cut an order of rows (n,) into consecutive parts by their shares of n; what is over is left.

    The ends are rounded, not the sizes, so that shares which add up to 1 leave no row over.
    """
    ends = np.rint(np.cumsum([*shares.values()]) * len(order)).astype(int)
    begins = [0, *ends[:-1]]
    return {part: order[begin:end] for part, begin, end in zip(shares, begins, ends, strict=True)}
