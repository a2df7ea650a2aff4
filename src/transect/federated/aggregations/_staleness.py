"""How much a late update counts, in whole numbers: a share of 1 is `UNIT`.

Shares are rounded to 2^-16, so that sums are exact and no library's power function is seen in them; a share of 0.1 is
off by 8e-5 of it at most.
"""

from __future__ import annotations

import numpy as np

from transect.federated.aggregations import Settings, Summed
from transect.federated.exact_sum import MAX_WEIGHT, ExactSum

UNIT = 2**16
_MOST = MAX_WEIGHT // UNIT


def polynomial(staleness: np.ndarray, power: float) -> np.ndarray:
    """Return (1 + t)^-power, float64 (n,)."""
    return np.asarray((1.0 + staleness) ** -power)


class Discounted(Summed):
    """The mean of s(t) d over the number of updates, not over the sum of s: late updates make the step shorter."""

    def complaint(self, settings: Settings, clients: int) -> str | None:
        """Return that the sum of weights would be too large."""
        return f"{clients} updates at once: expected {_MOST} at most" if clients > _MOST else None

    def share(self, settings: Settings, staleness: np.ndarray) -> np.ndarray:
        """Return s(t), float64 (n,), from 0 to 1."""
        return polynomial(staleness, float(settings["power"]))

    def weights(self, settings: Settings, counts: np.ndarray, staleness: np.ndarray) -> np.ndarray:
        """Return s(t) in whole numbers; rows do not weigh."""
        return np.asarray(np.rint(self.share(settings, staleness) * UNIT), np.int64)

    def mean(self, settings: Settings, total: ExactSum) -> np.ndarray:
        """Return the sum over the number of updates."""
        return total.mean(total.count * UNIT)
