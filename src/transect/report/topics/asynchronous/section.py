"""Section: gradients applied as they arrive, how stale they are, and whether that pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from transect.analysis.parallelism import median_of
from transect.analysis.quality import TIME, reaches_target
from transect.report.engine.blocks import Chip, Column, Explained, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, drawn
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import palette
from transect.report.engine.columns import ACCURACY, MARKS, labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns
from transect.report.engine.text import number, scale_for
from transect.report.topics.asynchronous.facts import Asynchronous, Twin, asynchronous_groups
from transect.report.topics.parallel.findings import strategy_words


def asynchronous_body(context: Context) -> Iterator[Part]:
    """Draw the distribution of staleness and list each group beside its twins; nothing without one."""
    found = {name: rows for name in context.workloads("train") if (rows := asynchronous_groups(context, name))}
    if not found:
        return
    yield Lead(
        "A server applies each worker's gradient when it arrives, so no step can be held to the reference: these cells are "
        "judged by their time to quality and the quality at the end, beside training in step."
    )
    for number_, (workload, rows) in enumerate(found.items()):
        yield Heading(workload)
        if number_ < MAX_PANELS:
            yield _chart(context, workload, rows)
        yield _table(rows)
        pairs = [(row, twin) for row in rows for twin in row.twins]
        if pairs:
            yield _beside(pairs)
        else:
            yield note("Nothing that trains in step ran with equal work, so nothing stands beside it.")
    yield Explained(
        "Staleness: the updates between the fetch of the weights that a gradient was computed at and its application."
    )


def _samples(context: Context, row: Asynchronous) -> list[float]:
    """Return the staleness of every gradient of all repeats."""
    return [value for record in row.group.ok for value in context.originals.samples(record, "staleness")]


def _chart(context: Context, workload: str, rows: list[Asynchronous]) -> Part:
    """Draw, for each staleness, the share of gradients that are no staler."""
    lines, drawn_rows = [], []
    label = labelled(rows, always=("ranks",))
    for row, style in zip(rows, palette(len(rows)), strict=True):
        samples = _samples(context, row)
        if not samples:
            continue
        amounts = Counter(samples)
        steps = sorted(amounts)
        shares = [n / len(samples) for n in accumulate(amounts[step] for step in steps)]
        lines.append(
            Line(
                points=list(zip(steps, shares, strict=True)),
                style=style,
                width=1.6,
                name=str(label.entry(row)),
                about=row,
            )
        )
        drawn_rows.append(row)
    if not lines:
        return None
    return drawn(
        line_plot(lines, x_title="updates between fetch and application", y_title="share of gradients no staler"),
        drawn_rows,
        [
            label,
            digits("Gradients", lambda row: len(_samples(context, row))),
            medians("Median", "staleness"),
            medians("95th percentile", "staleness_p95", number, "too few"),
            digits("Most", lambda row: row.most),
        ],
        title="Staleness of gradients",
        name=f"staleness-{workload}",
        alt=f"{workload}: share of gradients by the updates between the fetch of their weights and their "
        f"application, of {len(lines)} cells.",
        notes=["All repeats together."],
    )


def _table(rows: list[Asynchronous]) -> Part:
    time = scale_for([median_of(row.group, TIME) for row in rows], "s")
    columns = [
        labelled(rows, always=("ranks",)),
        words("Bound", lambda row: row.bound),
        digits("Workers", lambda row: row.workers),
        digits("Runs", lambda row: len(row.group.ok)),
        medians("Staleness, median", "staleness"),
        medians("95th percentile", "staleness_p95", number, "too few"),
        digits("Most", lambda row: row.most),
        digits(
            "Steps to quality",
            lambda row: median_of(row.group, "steps_to_quality") if reaches_target(row.group) else None,
            number,
            "not reached",
        ),
        digits(
            f"Time to quality ({time.unit})",
            lambda row: median_of(row.group, TIME) if reaches_target(row.group) else None,
            time,
            "not reached",
        ),
        ACCURACY,
        words("Equality", lambda row: Chip("not checkable: asynchronous", "warn")),
        MARKS,
    ]
    return table(rows, columns, caption="Asynchronous updates")


def _beside(pairs: list[tuple[Asynchronous, Twin]]) -> Part:
    labels = labelled([pair[0] for pair in pairs], always=("ranks",))
    time = scale_for([median_of(twin.group, TIME) for _, twin in pairs], "s")
    columns: list[Column[Any]] = [
        words("Cell", lambda pair: labels.entry(pair[0])),
        words("Beside", lambda pair: f"{strategy_words(pair[1].group)} {pair[1].words}"),
        digits(
            f"Its time to quality ({time.unit})",
            lambda pair: median_of(pair[1].group, TIME) if reaches_target(pair[1].group) else None,
            time,
            "not reached",
        ),
        *contrast_columns("Of its time", lambda pair: pair[1].time, less="sooner", more="later"),
        words("Accuracy beside", lambda pair: ACCURACY.entry(pair[1].group)),
    ]
    return table(pairs, columns, caption="Beside training in step")
