"""Columns, marks and charts of groups, and of whatever row is about one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Group
from transect.analysis.labels import group_labels
from transect.analysis.quality import TIME, Score, may_be_ranked, reaches_target, score_of
from transect.domain.metrics import Direction, metric
from transect.report.engine.blocks import Chart, Chip, Column, Value, digits, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import Scale, Writer, clean, number, spread, tenths

T = TypeVar("T")
G = TypeVar("G", bound=Group)

NOT_TOLD = "not told"


def ended(record: AnyRecord, tone: str = "warn") -> Chip:
    """Return the chip of how a record ended; a pointer that rests on it reads its message."""
    return Chip(str(record.cause or record.status), tone, title=clean(record.message))


def _marks(group: Group) -> Chip | None:
    """Return the chip that warns about a group, if any."""
    if group.wrong:
        return Chip("diverged" if group.diverged else "wrong result", "bad")
    if group.over_subscribed:
        return Chip("over-subscribed", "warn")
    return Chip("disturbed", "warn") if group.disturbed else None


def ranked(groups: Iterable[G], name: str) -> list[G]:
    """Return the groups that have a metric, best median first."""
    medians = [(value, group) for group in groups if (value := median(group, name)) is not None]
    sign = -1 if metric(name).direction is Direction.HIGHER else 1
    medians.sort(key=lambda pair: (sign * pair[0], pair[1].cell.id))
    return [group for _, group in medians]


def _group(row: Any) -> Group:
    """Return the group that a row is, or is about."""
    return row if isinstance(row, Group) else row.group


def labelled(
    rows: Iterable[Any], title: str = "Cell", *, always: Iterable[str] = (), never: Iterable[str] = ()
) -> Column[Any]:
    """Return the column that names groups, or rows about them, as `group_labels` does."""
    labels = group_labels([_group(row) for row in rows], always, never)
    return words(title, lambda row: labels[_group(row).cell])


def medians(title: str, name: str, write: Writer = number, missing: str = "–") -> Column[Any]:
    """Return the column of a metric's median."""
    return digits(title, lambda row: median(_group(row), name), write, missing)


def metric_columns(name: str, scale: Scale, title: str = "Median", unit: str = "") -> list[Column[Any]]:
    """Return the columns of a metric: its median, its range or interval, and the runs behind it."""
    unit = unit or scale.unit
    return [
        medians(f"{title} ({unit})" if unit else title, name, scale),
        digits("Range or interval", lambda row: spread(_group(row).summary(name), scale)),
        digits("Runs", lambda row: found.count if (found := _group(row).summary(name)) else 0),
    ]


def time_columns(scale: Scale, title: str = "Median") -> list[Column[Any]]:
    """Return the columns of the time to quality: empty but where it may be ranked."""
    middle, ends, _ = metric_columns(TIME, scale, title)

    def reached(group: Group) -> Value:
        if may_be_ranked(group) or group.kind.synthetic:
            return middle.entry(group)
        if reaches_target(group):
            return Chip(f"not checkable from step {group.check_inconclusive_from}", "warn")
        amount = len(group.values(TIME))
        text = f"reached in {amount} of {len(group.ok)}" if amount else "not reached"
        return Chip(text, "warn")

    return [
        digits(middle.title, reached),
        digits(ends.title, lambda group: ends.entry(group) if may_be_ranked(group) else None),
    ]


RANKS: Column[Any] = digits("Ranks", lambda row: _group(row).cell.ranks)
MARKS: Column[Any] = words("", lambda row: _marks(_group(row)))
USUAL_SCORE = "Accuracy"


def score_title(score: Score) -> str:
    """Name a score as a table's head does: with the better direction, where that is not the usual one.

    >>> score_title(Score(name="accuracy", lower=False)), score_title(Score(name="mean_squared_error", lower=True))
    ('Accuracy', 'Mean squared error (lower is better)')
    """
    title = score.words[:1].upper() + score.words[1:]
    return clean(f"{title} (lower is better)" if score.lower else title)


def score_column(rows: Iterable[Any]) -> Column[Any]:
    """Return the column of what trainings reached on the test set at the end: of the score that most rows have.

    A row of another score names it.
    """
    usual = score_of(map(_group, rows))

    def value(row: Any) -> Any:
        group = _group(row)
        own = score_of([group])
        found = own.at_end(group)
        return found if found is None or own.name == usual.name else f"{_written(own, found)} {own.words}"

    return digits(score_title(usual), value, lambda found: _written(usual, found), clean(f"no {usual.words}"))


def _written(score: Score, value: float) -> str:
    return tenths(value) if score.is_share else number(value)


def metric_chart(
    context: Context,
    groups: Sequence[Group],
    measure: str,
    label: Column[Group],
    columns: Sequence[Column[Group]],
    *,
    scale: Scale,
    right: Callable[[Group], str],
    bound: Callable[[Group], float | None] = lambda group: None,
    **how: Any,
) -> Chart | None:
    """Draw groups by a metric, in their order: median, ends and repeats; None without any group.

    The table names them, and ends with the score that they reached and what they are marked with. `right` is
    what stands at the right of each, `bound` its mark. The rest is that of `dot_chart`.
    """

    def dot(group: Group) -> Dot:
        summary = group.summary(measure)
        if summary is None:
            raise ValueError(f"{group.cell.id}: has no {measure} to draw")
        return Dot(
            label=str(label.entry(group)),
            value=summary.median / scale.factor,
            low=summary.low / scale.factor,
            high=summary.high / scale.factor,
            points=[value / scale.factor for value in group.values(measure)],
            style=context.style(group),
            bound=bound(group),
            right=right(group),
            hollow=group.over_subscribed,
        )

    return dot_chart(groups, dot, [label, *columns, score_column(groups), MARKS], **how)
