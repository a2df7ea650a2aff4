"""When a median is known well enough: the stopping rule of the runner contract."""

from __future__ import annotations

import math
from collections.abc import Sequence

INTERVAL_WIDTH = 0.02
_Z95 = 1.959964


def interval_is_narrow(values: Sequence[int], width: float = INTERVAL_WIDTH) -> bool:
    """Tell whether the 95 % interval of the median is at most `width` of the median wide.

    Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of
    Computer and Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
    """
    n = len(values)
    low = math.floor(0.5 * n - 0.5 * _Z95 * math.sqrt(n))
    high = math.ceil(0.5 * n + 1 + 0.5 * _Z95 * math.sqrt(n))
    if low < 1 or high > n:
        return False
    ordered = sorted(values)
    median = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    return ordered[high - 1] - ordered[low - 1] <= width * median
