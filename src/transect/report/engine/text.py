"""Numbers and foreign text as a person reads them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from transect.domain.terminal import printable
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread, Summary

_STEPS: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "FLOP": ((1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"), (1.0, "FLOP")),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"), (1.0, "FLOP/s")),
}

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """A unit for a whole column or axis: stored values are divided by `factor`."""

    factor: float
    unit: str

    def __call__(self, value: float | None) -> float | None:
        """Convert one stored value to this unit; None stays None."""
        return None if value is None else value / self.factor

    def text(self, value: float | None) -> str:
        """Format one stored value without its unit; a dash when there is none."""
        return "–" if value is None else number(value / self.factor)


def scale_for(values: Iterable[float | None], unit: str) -> Scale:
    """Choose the unit in which the middle one of the values reads best."""
    known = sorted(abs(v) for v in values if v is not None and v != 0 and math.isfinite(v))
    steps = _STEPS.get(unit)
    if steps is None:
        return Scale(factor=1.0, unit="" if unit == "1" else unit)
    middle = known[len(known) // 2] if known else 1.0
    by, name = next((step for step in steps if middle >= step[0]), steps[-1])
    return Scale(factor=by, unit=name)


def number(value: float) -> str:
    """Format with three significant digits, thousands apart, and a real minus sign.

    >>> [number(x) for x in (12345.6, 12.345, 0.5, 0.000012, 0)]
    ['12\\u202f346', '12.3', '0.5', '1.2e-5', '0']
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size == 0:
        text = "0"
    elif size >= 1e9 or size < 1e-3:
        head, _, power = f"{value:.2g}".partition("e")
        text = f"{head}e{int(power)}" if power else head
    elif size >= 100:
        text = f"{value:,.0f}".replace(",", "\u202f")
    elif float(value).is_integer():
        text = f"{value:.0f}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", "−") if value < 0 else text


def quantity(value: float | None, unit: str) -> str:
    """Format a value with the unit in which it reads best, as it is written: never `1 000 ms`.

    >>> quantity(0.9996, "s"), quantity(0.9994, "s"), quantity(None, "s")
    ('1 s', '999 ms', '–')
    """
    if value is None:
        return "–"
    scale = scale_for([max(value, float(f"{value:.3g}"), key=abs)], unit)
    return f"{scale.text(value)} {scale.unit}".strip()


@dataclass(frozen=True, slots=True)
class Quantities:
    """Writes stored values of a unit, each in the one in which it reads best."""

    unit: str

    def __call__(self, value: float | None) -> str:
        """Write a value with its unit."""
        return quantity(value, self.unit)


in_unit = Quantities


def percent(share: float | None, digits: int = 0) -> str:
    """Format a share of one as a percentage."""
    if share is None:
        return "–"
    if 0 < share < 0.005 and digits == 0:
        return f"{share:.1%}".replace("%", " %") if share >= 0.0005 else "under 0.1 %"
    return f"{share:.{digits}%}".replace("%", " %")


def tenths(share: float) -> str:
    """Format a share of one, which may be negative, as a percentage with one decimal."""
    text = percent(abs(share), 1)
    return f"−{text}" if share < 0 and text != "0.0 %" else text


def spread(summary: Summary | None, scale: Scale) -> str:
    """Write the ends of a summary, `1.20 – 1.31`; a dash when there is but one value."""
    if summary is None or summary.spread is Spread.SINGLE:
        return "–"
    return f"{scale.text(summary.low)} – {scale.text(summary.high)}"


def factor(value: float) -> str:
    """Format a ratio: three decimals near one, where they tell, else three digits.

    >>> [factor(x) for x in (1.0, 0.9961, 2.0712)]
    ['1.000', '0.996', '2.07']
    """
    return f"{value:.3f}" if 0.9 < value < 1.1 else number(value)


def ends(estimate: Estimate, write: Callable[[float], str] = number) -> str:
    """Write what the ends of an estimate are, `95 % interval 1.20 to 1.31`."""
    if estimate.spread is Spread.SINGLE:
        return "one run a side"
    return f"{estimate.word} {write(estimate.low)} to {write(estimate.high)}"


@overload
def with_ends(estimate: Estimate, write: Callable[[float], str] = factor) -> str: ...
@overload
def with_ends(estimate: Estimate | None, write: Callable[[float], str] = factor) -> str | None: ...
def with_ends(estimate: Estimate | None, write: Callable[[float], str] = factor) -> str | None:
    """Write an estimate for a table, `0.746 (0.733 – 0.775)`; None stays None.

    One run a side has no ends.
    """
    if estimate is None or estimate.spread is Spread.SINGLE:
        return None if estimate is None else write(estimate.value)
    return f"{write(estimate.value)} ({write(estimate.low)} – {write(estimate.high)})"


def count(amount: int, noun: str, plural: str = "") -> str:
    """Write `1 cell` or `3 cells`."""
    return f"{amount} {noun if amount == 1 else plural or noun + 's'}"


def clean(text: str) -> str:
    """Make foreign text show what it holds: no terminal codes, controls and marks visible."""
    return printable(_ANSI.sub("", text.replace("\r\n", "\n")), "\n\t")


def clipped(text: str, most: int) -> str:
    """Return foreign text on one line of at most so many characters."""
    text = " ".join(clean(text).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def without_half_code(text: str) -> str:
    """Return text whose code, between two backticks, may have been cut: with quotes, lest all behind it becomes code."""
    return text.replace("`", "'") if text.count("`") % 2 else text


def plain(value: Any) -> str:
    """Write counts with all their digits, other numbers with three, and text as it is."""
    return number(value) if isinstance(value, float) else str(value)


# How the values of a column are written.
Writer = Callable[[Any], str] | Scale
_TIMES: dict[Any, float] = {plain: 1.0, number: 1.0, factor: 1.0, percent: 100.0, tenths: 100.0}
# Three digits are too few to sort by, and to take away.
_DIGITS = 6
# Numbers behind a column: the unit that its title does not name, None where nobody knows; then one for each row.
Numbers = list[Any]

W = TypeVar("W", bound=Callable[..., Any])


def multiplying(by: float) -> Callable[[W], W]:
    """Mark a function that writes numbers by what it multiplies them."""

    def mark(write: W) -> W:
        _TIMES[write] = by
        return write

    return mark


def numbers_behind(write: Writer, values: Sequence[Any]) -> Numbers | None:
    """Return the numbers of a column in the unit in which it is written, to sort and to take away; None without any.

    Where each row has a unit of its own, they are in that in which they are stored. Where nobody knows what a writer
    does to its numbers they are good for sorting alone: their unit is None.

    >>> numbers_behind(percent, [0.5, None]), numbers_behind(in_unit("s"), [2e-3, 2])
    (['%', 50.0, None], ['s', 0.002, 2.0])
    """
    held = (value.value if isinstance(value, Estimate) else value for value in values)
    known = [
        value if isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value) else None
        for value in held
    ]
    if all(value is None for value in known):
        return None
    unit: str | None
    if isinstance(write, (Scale, Quantities)):
        by, unit = (1 / write.factor, "") if isinstance(write, Scale) else (1.0, write.unit)
    else:
        by = _TIMES.get(write, 1.0)
        unit = None if write not in _TIMES else "%" if by == 100 else ""

    def digits(value: float) -> float:
        return value if isinstance(value, int) and by == 1 else float(f"{value * by:.{_DIGITS}g}")

    return [unit, *(None if value is None else digits(value) for value in known)]
