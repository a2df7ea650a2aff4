"""A chart as it stands in the page: the drawing, what it says in words, the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from transect.report.blocks import Chart, Column, LegendItem, table
from transect.report.charts.plots import Dot, dot_plot
from transect.report.charts.theme import render
from transect.report.text import number

__all__ = ["MOST_DRAWN", "MOST_PANELS", "dot_chart", "drawn", "left_out"]

T = TypeVar("T")

# Rows of one chart; more are listed below it.
MOST_DRAWN = 20
# Charts of one kind side by side: each takes as long to draw as thousands of records to read.
MOST_PANELS = 12


def left_out(rows: int, most: int, which: str) -> str:
    """Say how many rows of a chart stand in its table only; empty when none do."""
    if rows <= most:
        return ""
    return f"{most} of {rows} are drawn; the {rows - most} {which} stand in the table only."


def drawn(
    drawing: Any, items: Sequence[T], columns: Sequence[Column[T]], *, title: str, name: str,
    alt: str, notes: Iterable[str] = (), legend: Sequence[LegendItem] = (),
) -> Chart:  # fmt: skip
    """Render a drawing beside its numbers; `name` is unique in the page, `alt` says what it shows."""
    return Chart(
        title=title,
        svg=render(drawing, alt_text=alt, name=name),
        table=table(items, columns, folded="Numbers"),
        note=" ".join(note for note in notes if note),
        legend=legend,
    )


def dot_chart(
    items: Sequence[T], dot: Callable[[T], Dot], columns: Sequence[Column[T]], *, title: str,
    axis: str, name: str, about: str = "", first: str = "Best", unit: str = "",
    others: Sequence[T] = (), most: int = MOST_DRAWN, cut: str = "slowest",
    notes: Iterable[str] = (), legend: Sequence[LegendItem] = (), rule: float | None = None,
    log: bool | None = None, among: Sequence[float] = (),
) -> Chart | None:  # fmt: skip
    """Draw a row of dots per item, in their order, and list all of them; None without any.

    `first` says what the first item is, `cut` what those are that are not drawn (empty: the notes
    say it); `others` are
    listed only. `axis` is the axis's title; `rule`, `log` and `among` are those of `dot_plot`.
    """
    if not items:
        return None
    dots = [dot(item) for item in items[:most]]
    best = dots[0]
    told = best.right if best.right.endswith(unit) and unit else f"{number(best.value)} {unit}"
    where = f"{about}: {title}" if about else title
    return drawn(
        dot_plot(dots, title=axis, rule=rule, log=log, among=among), [*items, *others], columns,
        title=title, name=name, legend=legend,
        alt=f"{where}, {len(dots)} rows. {first}: {best.label}, {told.strip()}.",
        notes=(left_out(len(items), most, cut) if cut else "", *notes),
    )  # fmt: skip
