"""Columns, marks and charts of groups, and of whatever row is about one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from transect.analysis.comparisons import Comparison
from transect.analysis.groups import Group
from transect.domain.cell import Cell
from transect.domain.metrics import Direction, metric
from transect.report.blocks import Chart, Chip, Column, digits, words
from transect.report.charts.chart import dot_chart
from transect.report.charts.plots import Dot
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.text import Scale, number, spread, tenths

__all__ = [
    "ACCURACY", "MARKS", "MOST_OPEN", "NOT_TOLD", "RANKS", "accuracy_text", "label_column", "marks",
    "median_column", "metric_chart", "metric_columns", "ranked", "undecided",
]  # fmt: skip

NOT_TOLD = "not told"
# Rows above which a table of groups hides behind its title: the charts have tables of their own.
MOST_OPEN = 24


def undecided(comparison: Comparison) -> Chip:
    """Return the chip of two sides that cannot be told apart."""
    alone = min(comparison.a.count, comparison.b.count) == 1
    return Chip("one run a side" if alone else "within noise")


def marks(group: Group) -> Chip | None:
    """Return the chip that warns about a group, if any."""
    if group.over_subscribed:
        return Chip("over-subscribed", "warn")
    return Chip("disturbed", "warn") if group.disturbed else None


def ranked(groups: Iterable[Group], name: str) -> list[Group]:
    """Return the groups that have a metric, best median first."""
    medians = [(value, group) for group in groups if (value := median(group, name)) is not None]
    sign = -1 if metric(name).direction is Direction.HIGHER else 1
    medians.sort(key=lambda pair: (sign * pair[0], pair[1].cell.id))
    return [group for _, group in medians]


def _group(row: Any) -> Group:
    """Return the group that a row is, or is about."""
    return row if isinstance(row, Group) else row.group


def label_column(labels: Mapping[Cell, str], title: str = "Cell") -> Column[Any]:
    """Return the column that names groups."""
    return words(title, lambda row: labels[_group(row).cell])


def median_column(
    title: str, name: str, write: Callable[[float], str] = number, missing: str = "–"
) -> Column[Any]:
    """Return the column of a metric's median."""
    return digits(title, lambda row: median(_group(row), name), write, missing)


def metric_columns(
    name: str, scale: Scale, title: str = "Median", unit: str = ""
) -> list[Column[Any]]:
    """Return the columns of a metric: its median, its range or interval, and the runs behind it."""
    unit = unit or scale.unit
    return [
        median_column(f"{title} ({unit})" if unit else title, name, scale.text),
        digits("Range or interval", lambda row: spread(_group(row).summary(name), scale)),
        digits("Runs", lambda row: len(_group(row).values(name))),
    ]


RANKS: Column[Any] = digits("Ranks", lambda row: _group(row).cell.ranks)
MARKS: Column[Any] = words("", lambda row: marks(_group(row)))
ACCURACY: Column[Any] = median_column("Accuracy", "accuracy", tenths, "no accuracy")


def accuracy_text(group: Group) -> str:
    """Return the median accuracy that a group reached, as text."""
    return str(ACCURACY.entry(group))


def metric_chart(
    context: Context, groups: Sequence[Group], measure: str, columns: Sequence[Column[Group]], *,
    scale: Scale, right: Callable[[Group], str],
    bound: Callable[[Group], float | None] = lambda group: None, **how: Any,
) -> Chart | None:  # fmt: skip
    """Draw groups by a metric, in their order: median, ends and repeats; None without any group.

    The first column names them, `right` is what stands at the right of each, `bound` its mark.
    The rest is that of `dot_chart`.
    """

    def dot(group: Group) -> Dot:
        summary = group.summary(measure)
        if summary is None:
            raise ValueError(f"{group.cell.id}: has no {measure} to draw")
        return Dot(
            label=str(columns[0].entry(group)),
            value=summary.median / scale.factor,
            low=summary.low / scale.factor,
            high=summary.high / scale.factor,
            points=[value / scale.factor for value in group.values(measure)],
            style=context.style(group),
            bound=bound(group),
            right=right(group),
            hollow=group.over_subscribed,
        )

    return dot_chart(groups, dot, columns, **how)
