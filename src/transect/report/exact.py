"""The numbers behind the written ones, for sorting and downloads: three digits are too few."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

_NUMBER = re.compile(r"^([−-]?)([\d\u202f]+)(?:\.(\d+))?(?:e([−+-]?\d+))?(?![\w.])")
# What a column may have been multiplied by before it was written: units, percentages.
_FACTORS = tuple([10.0**power for power in range(-15, 16)] + [1024.0**power for power in (-4, -3, -2, -1, 1, 2, 3, 4)])
_DIGITS = 6


def read_number(text: str) -> tuple[float, float] | None:
    """Read the number that a written value begins with, and half a unit of its last digit.

    None where it begins with none.

    >>> read_number("−12\\u202f346 ms")
    (-12346.0, 0.5)
    >>> read_number("1.20 – 1.31")
    (1.2, 0.005)
    >>> read_number("not reached") is None
    True
    """
    match = _NUMBER.match(text)
    if match is None:
        return None
    sign, whole, part, power = match.groups()
    scale = 10.0 ** int((power or "0").replace("−", "-"))
    size = float(whole.replace("\u202f", "") + "." + (part or "0")) * scale
    return (-size if sign else size), 0.5 * 10.0 ** -len(part or "") * scale


def exact_column(values: Sequence[Any], written: Sequence[Any]) -> tuple[str, str] | None:
    """Return the numbers of one column, comma between them, and whether they are in its unit.

    `written` is what stands in each row; what is no text, such as a chip, is no number. The second part is `exact`
    where one factor leads from all values to what is written, so that the numbers may stand for it;
    else, as where each row has a unit of its own, it is `order`. None where nothing is gained: no
    numbers, or all digits are written already.
    """
    pairs = [
        (float(value), read_number(text) if isinstance(text, str) else None)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        else (None, None)
        for value, text in zip(values, written, strict=True)
    ]
    known = [(value, *shown) for value, shown in pairs if value is not None and shown is not None]
    if not known:
        return None
    times = _factor(known)
    if times is None:
        return _joined([value for value, _ in pairs]), "order"
    numbers = [None if value is None else value * times for value, _ in pairs]
    if all(value is None or (shown is not None and _same(value * times, shown[0])) for value, shown in pairs):
        return None
    return _joined(numbers), "exact"


def _factor(known: Sequence[tuple[float, float, float]]) -> float | None:
    """Return by what all values were multiplied before they were written; None if by no one factor."""
    told = [row for row in known if row[0] and row[1]]
    if not told:
        return 1.0
    value, shown, half = min(told, key=lambda row: row[2] / abs(row[1]))
    near = [factor for factor in _FACTORS if abs(value * factor - shown) <= half * 1.02]
    fits = [f for f in near if all(abs(v * f - s) <= h * 1.02 for v, s, h in known)]
    # Few digits may fit a million and 2^20 alike: then neither is known to be meant.
    return fits[0] if len(fits) == 1 else None


def _same(value: float, shown: float) -> bool:
    return math.isclose(value, shown, rel_tol=10.0**-_DIGITS, abs_tol=0.0)


def _joined(numbers: Sequence[float | None]) -> str:
    return ",".join("" if number is None else f"{number:.{_DIGITS}g}" for number in numbers)
