"""How much of a training's time more ranks do not shorten, with its interval.

The law is Amdahl's ("Validity of the single processor approach to achieving large scale computing capabilities", 1967)
with all that ranks do not share as one part: t(p) = a + b / p, of which a / (a + b) is serial. It knows nothing of time
that grows with the ranks, so a series is followed up to its fastest point only.

The interval of the ratio is Fieller's ("Some problems in interval estimation", Journal of the Royal
Statistical Society B 16, 1954): all shares that a t-test at 5 % does not reject. Where it is not bounded the
data cannot tell the share, and nothing is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from transect.stats.noise import middle

_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class SerialPart:
    """The share of one rank's time that is serial, in 0..1, with its 95 % interval.

    `share` is None where it cannot be estimated, with the `reason`. `ranks` are those that it was fitted to.
    """

    share: float | None
    low: float
    high: float
    ranks: tuple[int, ...]
    reason: str = ""


def serial_part(points: Iterable[tuple[int, float]]) -> SerialPart:
    """Fit (ranks, seconds > 0), repeats each for itself, up to the fastest number of ranks.

    Relative errors count alike: t is weighted by 1 / t^2. It takes three points on two numbers of ranks.
    """
    every = sorted(points)
    times: dict[int, list[float]] = {}
    for ranks, time in every:
        times.setdefault(ranks, []).append(time)
    if not times:
        return _unknown((), "nothing was measured")
    fastest = min(times, key=lambda ranks: (middle(times[ranks]), ranks))
    used = [(ranks, time) for ranks, time in every if ranks <= fastest]
    kept = tuple(ranks for ranks in times if ranks <= fastest)
    if len(kept) < 2:
        return _unknown(kept, "no larger number of ranks is faster than the first")
    if len(used) < 3:
        return _unknown(kept, "two runs fit any share")
    ranks, time = np.array(used, dtype=float).T
    design = np.column_stack([np.ones_like(ranks), 1 / ranks]) / time[:, None]
    inverse = np.linalg.inv(design.T @ design)
    fitted = inverse @ design.T @ np.ones_like(time)
    left = 1 - design @ fitted
    covariance = inverse * float(left @ left) / (len(used) - 2)
    return _fieller(fitted, covariance, len(used) - 2, kept)


def _fieller(fitted: np.ndarray, covariance: np.ndarray, freedom: int, ranks: tuple[int, ...]) -> SerialPart:
    """Return the ratio of the first parameter to the sum of both, with its interval."""
    serial, whole = float(fitted[0]), float(fitted.sum())
    variance, together = float(covariance[0, 0]), float(covariance[0].sum())
    of_whole = float(covariance.sum())
    bound = float(student.ppf(0.5 + _LEVEL / 2, freedom)) ** 2
    square = whole**2 - bound * of_whole
    if whole <= 0 or square <= 0:
        return _unknown(ranks, "these times scatter too much for any share to be ruled out")
    middle = (whole * serial - bound * together) / square
    discriminant = middle**2 - (serial**2 - bound * variance) / square
    half = math.sqrt(max(0.0, discriminant))
    if middle + half < 0:
        return _unknown(ranks, "more ranks gain more than their number, of which the law knows nothing")
    low, high = (min(1.0, max(0.0, end)) for end in (middle - half, middle + half))
    if (low, high) == (0.0, 1.0):
        return _unknown(ranks, "its interval reaches from nothing to everything")
    return SerialPart(share=min(1.0, max(0.0, serial / whole)), low=low, high=high, ranks=ranks)


def _unknown(ranks: tuple[int, ...], reason: str) -> SerialPart:
    return SerialPart(share=None, low=0.0, high=1.0, ranks=ranks, reason=reason)
