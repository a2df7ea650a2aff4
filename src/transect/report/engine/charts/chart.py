"""A chart as it stands in the page: the drawing, what it says in words, the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, TypeVar

from transect.analysis.groups import grouped
from transect.report.engine.blocks import Chart, Column, LegendItem, Mark, table
from transect.report.engine.charts.drawing import begin
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.lines import line_plot
from transect.report.engine.charts.marks import MAX_REPEATS, Dot, Drawing, Line, few, mark_of, quarters
from transect.report.engine.charts.plots import dot_plot, log_is_better
from transect.report.engine.charts.theme import Style
from transect.report.engine.text import count, number

T = TypeVar("T")

# Rows of one chart; more are listed below it.
MAX_DRAWN = 20
# Charts of one kind side by side: each takes as long to draw as thousands of records to read.
MAX_PANELS = 12
# Numbers below the axis of a line chart.
_MAX_TICKS = 16
# Marks of one line chart that are drawn one by one.
_MAX_MARKS = 600
_FEW = f"Of more than {MAX_REPEATS} runs of a mark, dots are the least, the quarters and the most."
_BOUND = Style(MUTED, "square", (2, 2))


def left_out(rows: int, most: int, which: str) -> str:
    """Say how many rows of a chart stand in its table only; empty when none do."""
    if rows <= most:
        return ""
    return f"{most} of {rows} are drawn; the {rows - most} {which} stand in the table only."


def drawn(
    drawing: Drawing,
    items: Sequence[T],
    columns: Sequence[Column[T]],
    *,
    title: str,
    name: str,
    notes: Iterable[str] = (),
    legend: Sequence[LegendItem] = (),
) -> Chart:
    """Begin a drawing, to stand beside its numbers; `name` is unique in the page."""
    return Chart(
        title=title,
        drawing=begin(drawing, alt_text=_alt(title, drawing), name=name),
        table=table(items, columns, folded="Numbers"),
        note=" ".join(note for note in (*notes, drawing.said) if note),
        legend=() if drawing.named else legend,
        name=name,
        axis=drawing.axis,
        across=drawing.across,
        marks=drawing.marks,
    )


def _alt(title: str, drawing: Drawing) -> str:
    """Say what a drawing shows to whoever does not see it."""
    marks = [mark for mark in drawing.marks if not mark.parts]
    first = next((f" First: {mark.label}, {number(mark.value)}." for mark in marks if mark.value is not None), "")
    over = f" over {drawing.across}" if drawing.across else ""
    return f"{title}. {drawing.axis}{over}, {count(len(marks), 'mark')}.{first}"


def dot_chart(
    items: Sequence[T],
    dot: Callable[[T], Dot],
    columns: Sequence[Column[T]],
    *,
    title: str,
    axis: str,
    name: str,
    others: Sequence[T] = (),
    most: int = MAX_DRAWN,
    cut: str = "slowest",
    notes: Iterable[str] = (),
    legend: Sequence[LegendItem] = (),
    **how: Any,
) -> Chart | None:
    """Draw a row of dots per item, in their order, and list all of them; None without any.

    `cut` says what those are that are not drawn; `others` are listed only. `axis` is the axis's title; the rest is that
    of `dot_plot`.
    """
    if not items:
        return None
    dots = [
        replace(made, about=item) if made.about is None else made
        for made, item in ((dot(item), item) for item in items[:most])
    ]
    return drawn(
        dot_plot(dots, title=axis, **how),
        [*items, *others],
        columns,
        title=title,
        name=name,
        legend=legend,
        notes=(
            left_out(len(items), most, cut),
            *notes,
            _FEW if any(len(made.points) > MAX_REPEATS for made in dots) else "",
        ),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One place of a series: its repeats, and what it is about; `hollow`: they carry no claim.

    `gathered`: the number of runs of several cells that it stands for; `repeats` are the quarters of their medians.
    """

    x: float
    repeats: Sequence[float]
    hollow: bool = False
    about: Any = None
    gathered: int = 0

    @property
    def y(self) -> float:
        """The median, to which lines go."""
        return median(self.repeats)


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """The points that one line joins, except the hollow ones."""

    name: str
    style: Style
    points: Sequence[Point]

    def lines(self) -> Iterator[Line]:
        """Draw the points that carry a claim, joined, and apart from them the others."""
        for hollow in (False, True):
            alike = sorted((p for p in self.points if p.hollow is hollow), key=lambda p: (p.x, p.y))
            if alike:
                small = [few(point.repeats) for point in alike]
                yield Line(
                    points=[(point.x, point.y) for point in alike],
                    scatter=[(point.x, value) for point, values in zip(alike, small, strict=True) for value in values],
                    style=self.style,
                    joined=not hollow,
                    hollow=hollow,
                    name=self.name,
                    marks=[self._mark(point) for point in alike],
                    of=[place for place, values in enumerate(small) for _ in values],
                )

    def _mark(self, point: Point) -> Mark:
        made = mark_of(self.name, point.y, point.repeats, at=point.x, about=point.about)
        if not point.gathered:
            return made
        return replace(made, low=min(point.repeats), high=max(point.repeats), ends="range", count=point.gathered)


def gather(series: Sequence[Series]) -> tuple[list[Series], str]:
    """Return series with no more points than a chart has room for, and a sentence on what was joined.

    Points of a series at one place become one, whose repeats are the quantiles of their medians.
    """
    amount = sum(len(point.repeats) for line in series for point in line.points)
    if amount <= _MAX_MARKS:
        return list(series), ""
    return [replace(old, points=_merged(old.points)) for old in series], (
        f"{amount} runs are too many to draw one by one: a symbol is the median of all cells of its "
        "series at that place, dots are their least, quarters and most."
    )


def _merged(points: Iterable[Point]) -> list[Point]:
    merged = []
    for (x, hollow), members in grouped(points, lambda point: (point.x, point.hollow)).items():
        if len(members) == 1:
            merged.append(members[0])
            continue
        about = [point.about for point in members]
        runs = sum(len(point.repeats) for point in members)
        values = quarters([point.y for point in members])
        merged.append(Point(x=x, repeats=values, hollow=hollow, about=about, gathered=runs))
    return sorted(merged, key=lambda point: point.x)


def line_chart(
    series: Sequence[Series],
    rows: Sequence[T],
    columns: Sequence[Column[T]],
    *,
    title: str,
    x: str,
    y: str,
    name: str,
    most: int,
    notes: Iterable[str] = (),
    height: int = 260,
    bound: Mapping[float, float] | None = None,
    bound_name: str = "",
    y_log: bool | None = None,
) -> Chart:
    """Draw medians over a number that doubles; all `rows` are listed, the first series drawn.

    `x` and `y` are the axes' titles; `bound` holds what no series can pass, by x. `y_log`: None
    leaves it to the values. At two places and fewer each has a row: a line would tell of what lies between.
    """
    ticks = sorted({point.x for member in series for point in member.points})
    few_places = len(ticks) <= 2
    shown, gathered = gather(series[: min(most, MAX_DRAWN // 2) if few_places else most])
    cut = len(series) - len(shown)
    if few_places:
        drawing = dot_plot(_rows(shown, x, bound or {}), title=y)
    else:
        lines = [line for member in shown for line in member.lines()]
        if bound:
            lines.append(Line(points=sorted(bound.items()), style=_BOUND, width=1.5, name=bound_name))
        drawing = line_plot(
            lines,
            x_title=x,
            y_title=y,
            x_log=True,
            height=height,
            ticks=ticks[:: len(ticks) // (_MAX_TICKS + 1) + 1],
            y_log=log_is_better([value for line in lines for _, value in line.points]) if y_log is None else y_log,
        )
    return drawn(
        drawing,
        rows,
        columns,
        title=title,
        name=name,
        notes=(
            *notes,
            gathered or (_FEW if any(len(p.repeats) > MAX_REPEATS for line in shown for p in line.points) else ""),
            f"Upright mark: {bound_name}." if bound and few_places else "",
            f"{count(cut, 'series', 'series')} more in the numbers." if cut else "",
        ),
    )


def _rows(series: Iterable[Series], x: str, bound: Mapping[float, float]) -> list[Dot]:
    """Return a row for each place of each series."""
    return [
        Dot(
            label=f"{member.name} · {number(point.x)} {x}",
            value=point.y,
            style=member.style,
            points=point.repeats,
            right=number(point.y),
            about=point.about,
            bound=bound.get(point.x),
            hollow=point.hollow,
        )
        for member in series
        for point in sorted(member.points, key=lambda point: point.x)
    ]
