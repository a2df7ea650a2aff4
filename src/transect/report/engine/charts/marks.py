"""What charts are drawn of: rows, lines and bars, and what each of their marks stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transect.report.engine.blocks import Mark
from transect.report.engine.charts.theme import Style
from transect.stats.samples import summarise

# Repeats of one mark that are drawn one by one.
MAX_REPEATS = 12


def quarters(values: Sequence[float]) -> list[float]:
    """Return the least, the quarters and the most of some values, each place once.

    >>> quarters([5, 1, 3])
    [1, 3, 5]
    """
    ordered, last = sorted(values), len(values) - 1
    return [ordered[place] for place in sorted({round(q * last) for q in (0, 0.25, 0.5, 0.75, 1)})]


def few(values: Sequence[float]) -> list[float]:
    """Return the values that are drawn as small dots: of too many their quarters.

    >>> few(range(101))
    [0, 25, 50, 75, 100]
    """
    return quarters(values) if len(values) > MAX_REPEATS else list(values)


class Drawing(dict[str, Any]):
    """A drawing in Vega-Lite, with what its marks stand for; marks carry the number of theirs.

    `axis` is the title of the axis that their values lie on, `across` that of the other one, if any; `said` is what a
    reader has to be told of the drawing itself. `named`: its series have their names beside them, and need no legend.
    """

    marks: list[Mark]
    axis: str
    across: str
    said: str = ""
    named: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Dot:
    """One row of a dot plot, all numbers in the axis's unit.

    `low` and `high` are drawn as a line, `inner` as a thicker one, `points` as small dots,
    `bound` as an upright mark. `hollow` says that the value carries no claim. `about` is what the row
    is about, `head` the heading of the rows that it stands among. Without points, `ends` says what `low` and `high` are, and `count` how many runs there were.
    """

    label: str
    value: float
    style: Style
    low: float | None = None
    high: float | None = None
    inner: tuple[float, float] | None = None
    points: Sequence[float] = ()
    bound: float | None = None
    right: str = ""
    hollow: bool = False
    about: Any = None
    ends: str = ""
    count: int | None = None
    head: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One series of a line plot: points (x, y), small dots, and whether points are joined.

    `size` is that of a symbol, in square pixels. `marks` says what each point stands for, `of` of which point each small dot is; without them
    `name` and `about` say what the whole line does.
    """

    points: Sequence[tuple[float, float]]
    style: Style
    scatter: Sequence[tuple[float, float]] = ()
    joined: bool = True
    symbols: bool = True
    size: float = 58
    hollow: bool = False
    width: float = 2.0
    name: str = ""
    about: Any = None
    marks: Sequence[Mark] = ()
    of: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One row of stacked bars: (length, style) of each part, in the axis's unit.

    `starts`: where each part begins that does not follow the one before it.
    """

    label: str
    parts: Sequence[tuple[float, Style]]
    right: str = ""
    about: Any = None
    starts: Sequence[float] = ()


def mark_of(
    label: str,
    value: float,
    repeats: Sequence[float],
    *,
    about: Any = None,
    at: float | None = None,
    low: float | None = None,
    high: float | None = None,
    ends: str = "",
    count: int | None = None,
) -> Mark:
    """Say what a mark stands for: the median of repeats with its ends, or what is given in their place."""
    what, summary = "value", summarise(repeats)
    if summary is not None and math.isclose(summary.median, value, rel_tol=1e-9):
        what, low, high, ends, count = "median", summary.low, summary.high, summary.word, summary.count
    return Mark(
        label=label,
        about=about,
        at=at,
        what=what,
        value=value,
        low=low,
        high=high,
        ends=ends or "ends",
        count=count or len(repeats) or None,
    )
