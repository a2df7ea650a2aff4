"""How a step would go on more ranks than there are: an extrapolation, and called one."""

from __future__ import annotations

import numpy as np

from transect.simulation.networks import Clocks

MAX_RANKS = 131_072


def powers(least: int = 1, most: int = MAX_RANKS) -> list[int]:
    """Return `least`, twice as many, and so on up to `most`.

    >>> powers(3, 20)
    [3, 6, 12]
    """
    found = []
    while least <= most:
        found.append(least)
        least *= 2
    return found


def stragglers(ranks: int, sigma: float, seed: int = 0) -> Clocks:
    """Return how much longer each rank computes: log-normal about 1 with deviation `sigma` of its log."""
    return np.asarray(np.exp(np.random.default_rng(seed).normal(0.0, sigma, ranks)))
