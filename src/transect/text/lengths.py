"""How long texts are: a Gaussian fitted to their lengths, and what they are in truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np

# Bars of a histogram, and the share of the lengths that they hold: the rest may be far out.
_BARS, _SHOWN = 40, 0.995


class Lengths:
    """Lengths in words, as how often each occurs: `values` ascending and `tickets`, both int64."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self.values = np.array(sorted(counts), np.int64)
        self.tickets = np.array([counts[value] for value in sorted(counts)], np.int64)
        self.total = int(self.tickets.sum())

    @classmethod
    def of(cls, lengths: np.ndarray) -> Lengths:
        """Count lengths (n,)."""
        values, tickets = np.unique(lengths, return_counts=True)
        return cls(dict(zip(values.tolist(), tickets.tolist(), strict=True)))

    def mean(self) -> float:
        """Return the mean; 0 without tickets."""
        return float(self.values @ self.tickets) / self.total if self.total else 0.0

    def deviation(self) -> float:
        """Return the standard deviation, of this population: its maximum-likelihood fit."""
        return math.sqrt(self._moment(2))

    def _moment(self, power: int) -> float:
        away = self.values - self.mean()
        return float((away**power) @ self.tickets) / self.total if self.total else 0.0

    def gaussian(self, share: float) -> float:
        """Return the bound below which `share` would lie if lengths were Gaussian."""
        if share >= 1:
            return math.inf
        return self.mean() + NormalDist().inv_cdf(share) * self.deviation()

    def quantile(self, share: float) -> int:
        """Return the shortest length that at least `share` of the texts do not exceed."""
        if not self.total:
            return 0
        # A share such as 0.95 is no binary fraction: one text more must not hang on its last digit.
        needed = math.ceil(share * self.total - 1e-9)
        return int(self.values[np.searchsorted(np.cumsum(self.tickets), max(needed, 1))])

    def above(self, bound: float) -> float:
        """Return the share of texts that are longer than `bound`."""
        return float(self.tickets[self.values > bound].sum()) / self.total if self.total else 0.0

    def normality(self) -> dict[str, Any] | None:
        """Test whether lengths are Gaussian, after Lilliefors; None where all are equal.

        `distance`: the largest one between the distribution and the Gaussian fitted to it;
        `critical_05`: what a sample of a Gaussian exceeds in 5 % of the cases (Molin and Abdi, 1998);
        skewness and excess kurtosis are 0 for a Gaussian.
        """
        deviation = self.deviation()
        if not deviation:
            return None
        fitted = NormalDist(self.mean(), deviation)
        expected = np.array([fitted.cdf(value) for value in self.values.tolist()])
        after = np.cumsum(self.tickets) / self.total
        before = after - self.tickets / self.total
        distance = float(np.max(np.maximum(after - expected, expected - before)))
        scale = (0.83 + self.total) / math.sqrt(self.total) - 0.01
        return {
            "distance": distance,
            "critical_05": 0.895 / scale,
            "gaussian": distance <= 0.895 / scale,
            "skewness": self._moment(3) / deviation**3,
            "excess_kurtosis": self._moment(4) / deviation**4 - 3,
        }

    def histogram(self) -> list[dict[str, int]]:
        """Return bars `low` ≤ length < `high` with their `tickets`; the last one has the far ones too."""
        if not self.total:
            return []
        width = self.quantile(_SHOWN) // _BARS + 1
        bars = self.quantile(_SHOWN) // width + 1
        heights = np.bincount(np.minimum(self.values // width, bars), self.tickets, bars + 1)
        ends = [*range(width, bars * width + 1, width), int(self.values[-1]) + 1]
        return [
            {"low": bar * width, "high": high, "tickets": int(height)}
            for bar, (high, height) in enumerate(zip(ends, heights.tolist(), strict=True))
            if height or bar < bars
        ]

    def facts(self) -> dict[str, Any]:
        """Return what a record says about them."""
        return {
            "tickets": self.total,
            "mean": self.mean(),
            "deviation": self.deviation(),
            "gaussian_95": self.gaussian(0.95),
            "gaussian_95_above": self.above(self.gaussian(0.95)),
            "quantile_95": self.quantile(0.95),
            "largest": int(self.values[-1]) if self.total else 0,
            "histogram": self.histogram(),
        }
