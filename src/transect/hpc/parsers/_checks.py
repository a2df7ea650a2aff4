"""Checks that parsers share: intervals of printed numbers, sizes in words, numbers that should agree."""

from __future__ import annotations

import math
import re

from transect.hpc.values import last_digit, number

# Lowest and highest value that a printed number may stand for.
Span = tuple[float, float]

_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)[ \t]*(bytes?|[KMGTPE]i?B)(?:\s|$)")
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def span(printed: str) -> Span | None:
    """Return what a number may stand for (`last_digit`), None for no number."""
    ends = last_digit(printed)
    return ends if math.isfinite(ends[0]) and math.isfinite(ends[1]) else None


def apart(first: Span, second: Span, slack: float) -> bool:
    """Tell whether two intervals, each widened by the relative `slack`, do not meet."""
    low, high = max(first[0], second[0]), min(first[1], second[1])
    return low > high + slack * max(abs(low), abs(high))


def geometric_mean(spans: list[Span]) -> Span:
    """Return between which values the geometric mean of not negative numbers lies."""
    ends = []
    for values in ([max(low, 0.0) for low, _ in spans], [max(high, 0.0) for _, high in spans]):
        logs = [math.log(v) if v > 0 else -math.inf for v in values]
        ends.append(math.exp(math.fsum(logs) / len(logs)) if min(logs) > -math.inf else 0.0)
    return ends[0], ends[1]


def bytes_of(text: str) -> Span | None:
    """Read `28.12 TiB`, `32 MiB` or `262144 bytes`; only decimals leave room for rounding."""
    match = _SIZE.match(text)
    if match is None:
        return None
    unit = match[2]
    factor = 1 if unit.startswith("b") else (1024 if "i" in unit else 1000) ** _POWERS[unit[0]]
    value = float(match[1])
    room = 10.0 ** -len(match[1].partition(".")[2]) if "." in match[1] else 0.0
    return (value - room) * factor, (value + room) * factor


def differ(first: float, second: float, relative: float, absolute: float = 0.0) -> bool:
    """Tell whether two numbers differ by more than rounding explains; NaN differs from all."""
    if not (math.isfinite(first) and math.isfinite(second)):
        return True
    return abs(first - second) > max(absolute, relative * max(abs(first), abs(second)))


def disagree(what: str, printed: str, derived: float, relative: float, unit: str) -> str | None:
    """Compare a printed number with the one derived from others of the same log.

    Returns a sentence with both numbers, or None when they agree or the first is no number.
    """
    value = number(printed)
    if value is None or not differ(value, derived, relative):
        return None
    return f"the log prints {printed} {unit} as {what}, but its other numbers give {derived:.6g}"


def whole(printed: str | None) -> int | None:
    return int(printed) if printed and len(printed) <= 18 and printed.isdecimal() else None
