"""Section: gradients applied as they arrive, how stale they are, and whether that pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from transect.analysis.parallelism import median_of
from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, drawn
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import Style, legend, palette
from transect.report.engine.columns import ACCURACY, MARKS, labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.text import number, scale_for, with_ends
from transect.report.topics.asynchronous.facts import TIME, Asynchronous, Twin, asynchronous_groups, reaches
from transect.report.topics.parallel.findings import strategy_words


def asynchronous_body(context: Context) -> Iterator[Part]:
    """Draw the distribution of staleness and list each group beside its twins; nothing without one."""
    by_workload = {
        workload: asynchronous_groups(context.of("train", workload), context.floors)
        for workload in context.workloads("train")
    }
    found = {workload: rows for workload, rows in by_workload.items() if rows}
    if not found:
        return
    yield Lead(
        "A server holds the weights and applies each worker's gradient when it arrives; a worker may be some steps "
        "ahead of the slowest. Which updates lie behind a gradient depends on who is faster, so no step can be "
        "held to the reference: these cells are judged by their time to quality and the quality at the end, "
        "beside training in step, never by the time of a step. With staleness 0 all step together, and the "
        "reference check applies."
    )
    yield note(
        "Staleness: the updates between the fetch of the weights that a gradient was computed at and its application. "
        "Tests are taken by the server whenever as many gradients are applied as workers have in an epoch, while "
        "requests wait; that counts in the time to quality, as testing does everywhere."
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


def _samples(context: Context, row: Asynchronous) -> list[float]:
    """Return the staleness of every gradient of all repeats."""
    return [value for record in row.group.ok for value in context.originals.samples(record, "staleness")]


def _chart(context: Context, workload: str, rows: list[Asynchronous]) -> Part:
    """Draw, for each staleness, the share of gradients that are no staler."""
    lines, names, drawn_rows = [], dict[str, Style](), []
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
        names[str(label.entry(row))] = style
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
        legend=legend(names.items()),
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
            lambda row: median_of(row.group, "steps_to_quality") if reaches(row.group) else None,
            number,
            "not reached",
        ),
        digits(
            f"Time to quality ({time.unit})",
            lambda row: median_of(row.group, TIME) if reaches(row.group) else None,
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
            lambda pair: median_of(pair[1].group, TIME) if reaches(pair[1].group) else None,
            time,
            "not reached",
        ),
        digits("Of its time", lambda pair: with_ends(pair[1].time.ratio) if pair[1].time else None),
        words("Verdict", lambda pair: _verdict(pair[1])),
        words("Accuracy beside", lambda pair: ACCURACY.entry(pair[1].group)),
    ]
    return table(pairs, columns, caption="Beside training in step")


def _verdict(twin: Twin) -> Chip | None:
    result = twin.time
    if result is None:
        return Chip("no time to compare", "warn")
    if result.over_subscribed:
        return Chip("open: shared cores", "warn", result.reason)
    if not result.shown:
        return Chip("open: within noise", "plain", result.reason)
    sooner = result.ratio.value < 1
    return Chip("sooner" if sooner else "later", "good" if sooner else "plain", result.reason)
