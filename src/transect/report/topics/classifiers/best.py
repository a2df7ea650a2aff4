"""What the best classifier of a corpus is good for: confusions, calibration, not knowing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from transect.report.engine.blocks import Chart, Column, Heading, Part, digits, table, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import Style, palette
from transect.report.engine.text import clean, clipped, count, number, tenths
from transect.report.topics.classifiers.facts import ClassifyGroup, corpus_label

# Classes of a whole confusion matrix; of more, the most frequent confusions are listed alone.
_MAX_CLASSES = 12
_MAX_CONFUSIONS = 15
_NAME, _OF_HASH = 18, 6
_HASH = re.compile(r"[0-9a-f]{16,}")
_DIAGONAL = Style(MUTED, "square", (4, 3))


def best_parts(best: ClassifyGroup) -> Iterator[Part]:
    """Draw and list what the records of one group tell."""
    name = best.cell.id.split("~")[1]
    yield Heading(clean(f"{corpus_label(best)}: what {best.cell.model} is good for"))
    yield calibration_chart(best, f"calibration-{name}")
    yield answer_chart(best, f"answers-{name}")
    yield from confusion_parts(best)


def _details(group: ClassifyGroup, key: str) -> list[Any]:
    return [found for record in group.ok if (found := record.details.get(key))]


def calibration_chart(group: ClassifyGroup, name: str) -> Chart | None:
    """Draw how often it is right by how sure it says to be, over all seeds."""
    bins: dict[tuple[float, float], list[Any]] = defaultdict(list)
    for found in _details(group, "calibration"):
        for row in found:
            if row.get("tickets"):
                bins[row["low"], row["high"]].append(row)
    rows = []
    for (low, high), members in sorted(bins.items()):
        tickets = sum(row["tickets"] for row in members)
        means = [sum(row[key] * row["tickets"] for row in members) / tickets for key in ("confidence", "accuracy")]
        rows.append((low, high, tickets, *means))
    if not rows:
        return None
    [style] = palette(1)
    lines = [
        Line(points=[(0.0, 0.0), (1.0, 1.0)], style=_DIAGONAL, symbols=False, width=1.5, name="as sure as right"),
        Line(points=[(row[3], row[4]) for row in rows], style=style, name=group.cell.model, about=group),
    ]
    return drawn(
        line_plot(lines, x_title="how sure it says to be", y_title="share told right"),
        rows,
        [
            digits("Sure from", lambda row: row[0], tenths),
            digits("to", lambda row: row[1], tenths),
            digits("Tickets", lambda row: row[2]),
            digits("Said", lambda row: row[3], tenths),
            digits("Right", lambda row: row[4], tenths),
        ],
        title="Calibration",
        name=name,
        alt=f"{group.cell.model}: share told right by how sure it says to be.",
        notes=["Test tickets of all seeds. Below the diagonal it is surer than it is right."],
    )


def answer_chart(group: ClassifyGroup, name: str) -> Chart | None:
    """Draw the accuracy among what it answers when it may say that it does not know."""
    by_threshold: dict[float, list[Any]] = defaultdict(list)
    for found in _details(group, "answers"):
        for row in found:
            by_threshold[row["threshold"]].append(row)
    rows = []
    for threshold, members in sorted(by_threshold.items()):
        right = [row["accuracy"] for row in members if row.get("accuracy") is not None]
        if right:
            rows.append((threshold, fmean(row["answered"] for row in members), fmean(right)))
    if not rows:
        return None
    style = palette(2)[1]
    return drawn(
        line_plot(
            [
                Line(
                    points=[(answered, right) for _, answered, right in rows],
                    style=style,
                    name=group.cell.model,
                    about=group,
                )
            ],
            x_title="share of tickets answered",
            y_title="share of these told right",
        ),
        rows,
        [
            digits("Answers when surer than", lambda row: row[0], tenths),
            digits("Answered", lambda row: row[1], tenths),
            digits("Right of these", lambda row: row[2], tenths),
        ],
        title="“I do not know”",
        name=name,
        alt=f"{group.cell.model}: share told right of what it answers, by how much it answers.",
        notes=["Each symbol is a threshold below which it does not answer; means over seeds."],
    )


def _short(name: str) -> str:
    """Cut a class's name; of an owner's hash its beginning tells enough."""
    return name[:_OF_HASH] if _HASH.fullmatch(name) else clipped(name, _NAME)


def _taken(total: Sequence[Sequence[int]], predicted: int, actual: int) -> int:
    return total[actual][predicted]


def confusion_parts(group: ClassifyGroup) -> Iterator[Part]:
    """List which classes are taken for which, over all seeds."""
    found, named = _details(group, "confusion"), _details(group, "classes")
    if not found or not named:
        return
    size = len(named[0])
    total = [[sum(matrix[i][j] for matrix in found) for j in range(size)] for i in range(size)]
    names = [_short(str(name)) for name in named[0]]
    if size <= _MAX_CLASSES:
        columns: list[Column[Any]] = [digits(f"→ {name}", partial(_taken, total, j)) for j, name in enumerate(names)]
        yield table(
            range(size),
            [words("Class", lambda i: names[i]), *columns],
            caption=f"Confusions: test tickets of each class by what they are told to be, {count(len(found), 'seed')} "
            "together",
        )
        return
    pairs = sorted(
        ((total[i][j], i, j) for i in range(size) for j in range(size) if i != j and total[i][j]),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    if pairs:
        yield table(
            pairs[:_MAX_CONFUSIONS],
            [
                words("Class", lambda row: names[row[1]]),
                words("taken for", lambda row: names[row[2]]),
                digits("Tickets", lambda row: number(row[0])),
                digits("of its class", lambda row: row[0] / sum(total[row[1]]), tenths),
            ],
            caption="The most frequent confusions",
        )
