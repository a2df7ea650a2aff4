"""Columns and marks that tables of groups share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from transect.analysis.comparisons import Comparison
from transect.analysis.groups import Group
from transect.domain.cell import Cell
from transect.report.blocks import Chip, Column, Value, digits, words
from transect.report.charts.plots import Dot
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.text import Scale, percent, spread

__all__ = [
    "NOT_TOLD", "RANKS", "accuracy_text", "label_column", "marks", "median_of", "metric_columns",
    "metric_dot", "ranked", "undecided",
]  # fmt: skip

NOT_TOLD = "not told"


def undecided(comparison: Comparison) -> Chip:
    """Return the chip of two sides that cannot be told apart."""
    alone = min(comparison.a.count, comparison.b.count) == 1
    return Chip("one run a side" if alone else "within noise", "plain")


def accuracy_text(group: Group) -> str:
    """Return the median accuracy that a group reached, as text."""
    accuracy = median(group, "accuracy")
    return "no accuracy" if accuracy is None else percent(accuracy, 1)


def marks(group: Group) -> Chip | None:
    """Return the chip that warns about a group, if any."""
    if group.over_subscribed:
        return Chip("over-subscribed", "warn")
    return Chip("disturbed", "warn") if group.disturbed else None


def ranked(groups: Iterable[Group], name: str, *, best_low: bool) -> list[Group]:
    """Return the groups that have a metric, best median first."""
    medians = [(value, group) for group in groups if (value := median(group, name)) is not None]
    sign = 1 if best_low else -1
    medians.sort(key=lambda pair: (sign * pair[0], pair[1].cell.id))
    return [group for _, group in medians]


def label_column(labels: Mapping[Cell, str], title: str = "Cell") -> Column[Group]:
    """Return the column that names groups."""
    return words(title, lambda group: labels[group.cell])


RANKS: Column[Group] = digits("Ranks", lambda group: str(group.cell.ranks))


def median_of(name: str, scale: Scale, missing: str = "–") -> Callable[[Group], Value]:
    """Return what writes the median of a metric in a unit."""

    def write(group: Group) -> Value:
        value = median(group, name)
        return missing if value is None else scale.text(value)

    return write


def metric_columns(
    name: str, scale: Scale, title: str = "Median", unit: str | None = None
) -> list[Column[Group]]:
    """Return the columns of a metric: its median, its range or interval, and the runs behind it."""
    unit = scale.unit if unit is None else unit
    return [
        digits(f"{title} ({unit})" if unit else title, median_of(name, scale)),
        digits("Range or interval", lambda group: spread(group.summary(name), scale)),
        digits("Runs", lambda group: str(len(group.values(name)))),
    ]


def metric_dot(
    context: Context, group: Group, name: str, scale: Scale, label: str, *, right: str,
    bound: float | None = None,
) -> Dot:  # fmt: skip
    """Draw a group by a metric: its median, its ends and its repeats."""
    summary = group.summary(name)
    if summary is None:
        raise ValueError(f"{label}: has no {name} to draw")
    return Dot(
        label=label,
        value=summary.median / scale.factor,
        low=summary.low / scale.factor,
        high=summary.high / scale.factor,
        points=[value / scale.factor for value in group.values(name)],
        style=context.style(group),
        bound=bound,
        right=right,
        hollow=group.over_subscribed,
    )
