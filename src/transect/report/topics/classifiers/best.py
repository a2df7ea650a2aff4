"""What the best classifier of a corpus is good for: confusions, calibration, not knowing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from transect.analysis.groups import grouped
from transect.report.engine.blocks import Chart, Column, Heading, Part, digits, table, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import Style
from transect.report.engine.context import Context
from transect.report.engine.text import clean, clipped, count, tenths
from transect.report.topics.classifiers.facts import ClassifyGroup, corpus_label

_MAX_CONFUSIONS = 15
_NAME, _OF_HASH = 18, 6
_HASH = re.compile(r"[0-9a-f]{16,}")
_DIAGONAL = Style(MUTED, "square", (4, 3))


def best_parts(context: Context, best: ClassifyGroup) -> Iterator[Part]:
    """Draw and list what the records of one group tell."""
    yield Heading(clean(f"{corpus_label(best)}: what {best.cell.model} is good for"))
    yield _calibration(context, best)
    yield _answers(context, best)
    yield _confusions(best)


def _details(group: ClassifyGroup, key: str) -> list[Any]:
    return [found for record in group.ok if (found := record.details.get(key))]


def _calibration(context: Context, group: ClassifyGroup) -> Chart | None:
    """Draw how often it is right by how sure it says to be, over all seeds."""
    told = [row for found in _details(group, "calibration") for row in found if row.get("tickets")]
    rows = []
    for (low, high), members in sorted(grouped(told, lambda row: (row["low"], row["high"])).items()):
        tickets = sum(row["tickets"] for row in members)
        said, right = (
            sum(row[key] * row["tickets"] for row in members) / tickets for key in ("confidence", "accuracy")
        )
        rows.append((said, right, low, high, tickets))
    if len(rows) < 2:
        return None
    said, right, *_ = rows[-1]
    return _curve(
        context,
        group,
        rows,
        [
            digits("Sure from", lambda row: row[2], tenths),
            digits("to", lambda row: row[3], tenths),
            digits("Tickets", lambda row: row[4]),
            digits("Said", lambda row: row[0], tenths),
            digits("Right", lambda row: row[1], tenths),
        ],
        ("how sure it says to be", "share told right"),
        [Line(points=[(0.0, 0.0), (1.0, 1.0)], style=_DIAGONAL, symbols=False, width=1.5, name="as sure as right")],
        title=f"Where {group.cell.model} is {tenths(said)} sure, {tenths(right)} are right",
        name="calibration",
        note="Test tickets of all seeds. Below the diagonal it is surer than it is right.",
    )


def _answers(context: Context, group: ClassifyGroup) -> Chart | None:
    """Draw the accuracy among what it answers when it may say that it does not know."""
    told = [row for found in _details(group, "answers") for row in found]
    rows = []
    for threshold, members in sorted(grouped(told, lambda row: row["threshold"]).items()):
        right = [row["accuracy"] for row in members if row.get("accuracy") is not None]
        if right:
            rows.append((fmean(row["answered"] for row in members), fmean(right), threshold))
    if len(rows) < 2:
        return None
    answered, right_of, _ = rows[-1]
    return _curve(
        context,
        group,
        rows,
        [
            digits("Answers when surer than", lambda row: row[2], tenths),
            digits("Answered", lambda row: row[0], tenths),
            digits("Right of these", lambda row: row[1], tenths),
        ],
        ("share of tickets answered", "share of these told right"),
        title=f"Where {group.cell.model} answers {tenths(answered)} of the tickets, {tenths(right_of)} of these are right",
        name="answers",
        note="Each symbol is a threshold below which it does not answer; means over seeds.",
    )


def _curve(
    context: Context,
    group: ClassifyGroup,
    rows: Sequence[Any],
    columns: Sequence[Column[Any]],
    axes: tuple[str, str],
    beside: Sequence[Line] = (),
    *,
    title: str,
    name: str,
    note: str,
) -> Chart:
    """Draw the first two numbers of each row."""
    style = context.styles.get(group.cell.kind)
    lines = [*beside, Line(points=[row[:2] for row in rows], style=style, name=group.cell.model, about=group)]
    return drawn(
        line_plot(lines, x_title=axes[0], y_title=axes[1]),
        rows,
        columns,
        title=clean(title),
        name=f"{name}-{group.cell.id.split('~')[1]}",
        notes=[note],
    )


def _short(name: str) -> str:
    """Cut a class's name; of an owner's hash its beginning tells enough."""
    return name[:_OF_HASH] if _HASH.fullmatch(name) else clipped(name, _NAME)


def _confusions(group: ClassifyGroup) -> Part:
    """List which classes are taken for which most often, over all seeds."""
    found, named = _details(group, "confusion"), _details(group, "classes")
    if not found or not named:
        return None
    names = [_short(str(name)) for name in named[0]]
    places = range(len(names))
    total = [[sum(matrix[i][j] for matrix in found) for j in places] for i in places]
    pairs = [(total[i][j], i, j) for i in places for j in places if i != j and total[i][j]]
    if not pairs:
        return None
    return table(
        sorted(pairs, key=lambda pair: (-pair[0], *pair[1:]))[:_MAX_CONFUSIONS],
        [
            words("Class", lambda row: names[row[1]]),
            words("taken for", lambda row: names[row[2]]),
            digits("Tickets", lambda row: row[0]),
            digits("of its class", lambda row: row[0] / sum(total[row[1]]), tenths),
        ],
        caption=f"The most frequent confusions of test tickets, {count(len(found), 'seed')} together",
    )
