"""Checks that the parsers of the compute benchmarks share."""

from __future__ import annotations

import math

from transect.hpc.values import number

MOST_PARAMETERS = 80


def differ(one: float, other: float, relative: float, absolute: float = 0.0) -> bool:
    """Tell whether two numbers differ by more than rounding explains; NaN differs from all."""
    if not (math.isfinite(one) and math.isfinite(other)):
        return True
    return abs(one - other) > max(absolute, relative * max(abs(one), abs(other)))


def disagree(what: str, printed: str, derived: float, relative: float, unit: str) -> str | None:
    """Compare a printed number with the one derived from others of the same log.

    Returns a sentence with both numbers, or None when they agree or the first is no number.
    """
    value = number(printed)
    if value is None or not differ(value, derived, relative):
        return None
    return f"the log prints {printed} {unit} as {what}, but its other numbers give {derived:.6g}"


def whole(printed: str | None) -> int | None:
    """Read a whole number of a sane length."""
    return int(printed) if printed and len(printed) <= 18 and printed.isdecimal() else None
