"""Where a log axis has its numbers."""

from __future__ import annotations

import math

# Powers of ten within which a log axis has even steps.
_NARROW = 0.477


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten from `low` to `high`, with 2 and 5 between them where they are few.

    Within a factor of three steps of one size are as good: some five of them.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    span = math.log10(high / low)
    if span < _NARROW:
        step = 10.0 ** math.floor(math.log10((high - low) / 2))
        step *= next(times for times in (0.5, 1.0, 2.0, 5.0) if (high - low) / (times * step) <= 6)
        first, last = math.ceil(low / step), math.floor(high / step)
        return [round(place * step, 12) for place in range(first, last + 1)]
    steps = (1.0, 2.0, 5.0) if span < 2.2 else (1.0,)
    every = 1 if span < 7 else 2
    ticks = [step * 10.0**power for power in range(first, last + 1, every) for step in steps]
    return [tick for tick in ticks if low <= tick <= high]
