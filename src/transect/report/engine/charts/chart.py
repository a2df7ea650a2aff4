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
from transect.report.engine.charts.marks import MAX_REPEATS, Bar, Dot, Drawing, Line, few, mark_of, quarters
from transect.report.engine.charts.plots import bar_plot, dot_plot, log_is_better
from transect.report.engine.charts.theme import Style
from transect.report.engine.text import count, number

T = TypeVar("T")

# Rows of one chart; more are listed below it.
MAX_DRAWN = 20
# Charts of one kind side by side: each takes as long to draw as thousands of records to read.
MAX_PANELS = 12
# Numbers below the axis of a line chart.
_MAX_TICKS = 16
# Marks of one line chart that are drawn one by one, and places of a series where there are more.
_MAX_MARKS, _MAX_PLACES, _MIN_PLACES = 600, 48, 8
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
    alt: str,
    notes: Iterable[str] = (),
    legend: Sequence[LegendItem] = (),
) -> Chart:
    """Begin a drawing, to stand beside its numbers; `name` is unique in the page, `alt` says what it shows."""
    return Chart(
        title=title,
        drawing=begin(drawing, alt_text=alt, name=name),
        table=table(items, columns, folded="Numbers"),
        note=" ".join(note for note in (*notes, drawing.said) if note),
        legend=() if drawing.named else legend,
        name=name,
        axis=drawing.axis,
        across=drawing.across,
        marks=drawing.marks,
    )


def dot_chart(
    items: Sequence[T],
    dot: Callable[[T], Dot],
    columns: Sequence[Column[T]],
    *,
    title: str,
    axis: str,
    name: str,
    about: str = "",
    first: str = "Best",
    unit: str = "",
    others: Sequence[T] = (),
    most: int = MAX_DRAWN,
    cut: str = "slowest",
    notes: Iterable[str] = (),
    legend: Sequence[LegendItem] = (),
    rule: float | None = None,
    log: bool | None = None,
    among: Sequence[float] = (),
    band: tuple[float, float] | None = None,
    limits: tuple[float, float] | None = None,
) -> Chart | None:
    """Draw a row of dots per item, in their order, and list all of them; None without any.

    `first` says what the first item is, `cut` what those are that are not drawn; `others` are listed
    only. `axis` is the axis's title; `rule`, `log`, `among`, `band` and `limits` are those of `dot_plot`.
    """
    if not items:
        return None
    dots = [
        replace(made, about=item) if made.about is None else made
        for made, item in ((dot(item), item) for item in items[:most])
    ]
    best = dots[0]
    value = best.right if best.right.endswith(unit) and unit else f"{number(best.value)} {unit}"
    where = f"{about}: {title}" if about else title
    return drawn(
        dot_plot(dots, title=axis, rule=rule, log=log, among=among, band=band, limits=limits),
        [*items, *others],
        columns,
        title=title,
        name=name,
        legend=legend,
        alt=f"{where}, {len(dots)} rows. {first}: {best.label}, {value.strip()}.",
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
        if not point.gathered:
            return mark_of(self.name, point.y, point.repeats, at=point.x, about=point.about)
        return Mark(
            label=self.name,
            about=point.about,
            at=point.x,
            what="median",
            value=point.y,
            low=min(point.repeats),
            high=max(point.repeats),
            ends="range",
            count=point.gathered,
        )


def gather(series: Sequence[Series]) -> tuple[list[Series], str]:
    """Return series with no more points than a chart has room for, and a sentence on what was joined.

    Points of a series at one place become one, whose repeats are the quantiles of their medians; of more places than
    fit, evenly spread ones stay.
    """
    amount = sum(len(point.repeats) for line in series for point in line.points)
    if amount <= _MAX_MARKS:
        return list(series), ""
    # A place is a symbol and up to five dots.
    places = min(_MAX_PLACES, max(_MIN_PLACES, _MAX_MARKS // (6 * len(series))))
    gathered = [Series(name=old.name, style=old.style, points=_spread(_merged(old.points), places)) for old in series]
    return gathered, (
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


def _spread(points: Sequence[Point], most: int) -> Sequence[Point]:
    if len(points) <= most:
        return points
    last = len(points) - 1
    return [points[round(i * last / (most - 1))] for i in range(most)]


def _many(series: Iterable[Series]) -> bool:
    return any(len(point.repeats) > MAX_REPEATS for line in series for point in line.points)


def line_chart(
    series: Sequence[Series],
    rows: Sequence[T],
    columns: Sequence[Column[T]],
    *,
    title: str,
    x: str,
    y: str,
    name: str,
    alt: str,
    most: int,
    notes: Iterable[str] = (),
    height: int = 260,
    bound: Mapping[float, float] | None = None,
    bound_name: str = "",
    y_log: bool | None = None,
) -> Chart:
    """Draw medians over a number that doubles; all `rows` are listed, the first series drawn.

    `x` and `y` are the axes' titles; `bound` holds what no series can pass, by x. `y_log`: None
    leaves it to the values. At two places and fewer these are bars: a line would tell of what lies between.
    """
    shown, gathered = gather(series[:most])
    ticks = sorted({point.x for member in series for point in member.points})
    cut = len(series) - len(shown)
    if len(ticks) <= 2:
        drawing, unseen = _bars(shown, x, y, bound or {})
    else:
        lines = [line for member in shown for line in member.lines()]
        if bound:
            lines.append(Line(points=sorted(bound.items()), style=_BOUND, width=1.5, name=bound_name))
        drawing, unseen = (
            line_plot(
                lines,
                x_title=x,
                y_title=y,
                x_log=True,
                height=height,
                ticks=ticks[:: len(ticks) // (_MAX_TICKS + 1) + 1],
                y_log=log_is_better([value for line in lines for _, value in line.points]) if y_log is None else y_log,
            ),
            0,
        )
    return drawn(
        drawing,
        rows,
        columns,
        title=title,
        name=name,
        alt=alt,
        notes=(
            *notes,
            gathered or (_FEW if _many(shown) else ""),
            f"Upright mark: {bound_name}." if bound and len(ticks) <= 2 else "",
            f"{count(cut + unseen, 'series', 'series')} more in the numbers." if cut + unseen else "",
        ),
    )


def _bars(series: Sequence[Series], x: str, y: str, bound: Mapping[float, float]) -> tuple[Drawing, int]:
    """Draw a bar for each place of each series, and count the series that have no room."""
    rows: list[Bar] = []
    for place, member in enumerate(series):
        points = sorted(member.points, key=lambda point: point.x)
        if rows and len(rows) + len(points) > MAX_DRAWN:
            return bar_plot(rows, title=y), len(series) - place
        rows += [
            Bar(
                label=f"{member.name} · {number(point.x)} {x}",
                parts=[(point.y, member.style)],
                right=number(point.y),
                about=point.about,
                bound=bound.get(point.x),
                points=point.repeats,
                hollow=point.hollow,
            )
            for point in points
        ]
    return bar_plot(rows, title=y), 0
