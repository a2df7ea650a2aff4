"""Section: how weights reach ranks and gradients come back, and what of it hides behind computing."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.parallelism import median_of
from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, drawn
from transect.report.engine.charts.marks import Bar
from transect.report.engine.charts.plots import bar_plot
from transect.report.engine.charts.theme import legend
from transect.report.engine.columns import MARKS, NOT_TOLD, labelled, medians, metric_columns
from transect.report.engine.context import Context
from transect.report.engine.text import factor, in_unit, percent, quantity, scale_for, with_ends
from transect.report.topics.parallel.overlapped import BLOCKING, Exchange, OverlapRow, exchanges
from transect.report.topics.parallel.pipelines import point_title

_PARTS = {"compute_time": "compute", "communication_time": "communication"}


def exchange_body(context: Context) -> Iterator[Part]:
    """Draw and list the variants at each point where one ran; nothing without any."""
    found = [
        exchange
        for workload in context.workloads("train")
        for exchange in exchanges(context.of("train", workload), context.floors)
    ]
    if not found:
        return
    yield Lead(
        "One step, brought about in different ways: weights by a blocking broadcast and gradients by a blocking "
        "reduce (SC-B), a broadcast that each layer waits for when it is needed (SC-OB), a reduction of each "
        "layer while the one before it computes (SC-OBR), in groups (hierarchical), beside what else ran on "
        "equal ranks with equal work."
    )
    yield note(
        "Waited: what is left to wait for when nothing is computed any more. Under way: how long messages were "
        "between their start and their end, hidden or not. Overlap: the share that hid. MPI does not move messages "
        "on by itself: the option progress says who does. Over the longer part: the step over the longer of "
        "computing and communication of SC-B, below which no overlap gets on equal work."
    )
    for number, exchange in enumerate(found):
        groups = [row.group for row in exchange.rows]
        yield Heading(point_title(groups))
        yield from _exchange(context, exchange, number)


def _exchange(context: Context, exchange: Exchange, number: int) -> Iterator[Part]:
    groups = [row.group for row in exchange.rows]
    label = labelled(groups, "Strategy", never=("ranks", "nodes", "framework", "workload", "batch"))
    scale = scale_for([median_of(group, "step_time") for group in groups], "s")
    if number < MAX_PANELS:
        yield _chart(context, exchange, label, number)
    columns: list[Column[OverlapRow]] = [
        label,
        words("Variant", lambda row: row.variant or None),
        *metric_columns("step_time", scale, "Step"),
        medians(f"Compute ({scale.unit})", "compute_time", scale, NOT_TOLD),
        medians(f"Waited ({scale.unit})", "communication_time", scale, NOT_TOLD),
        medians(f"Under way ({scale.unit})", "communication_total_time", scale, NOT_TOLD),
        medians("Overlap", "overlap", percent, NOT_TOLD),
        digits("Gradient", lambda row: median_of(row.group, "gradient_bytes"), in_unit("B")),
    ]
    if exchange.base is not None:
        columns += [
            digits("Beside SC-B", lambda row: with_ends(row.result.ratio) if row.result else None),
            words("Verdict", _verdict),
            digits("Over the longer part", lambda row: row.over_least, factor),
        ]
    without = f"; {BLOCKING} did not run here, so nothing stands beside SC-B"
    yield table(exchange.rows, [*columns, MARKS], caption="Variants" + ("" if exchange.base is not None else without))
    if exchange.least_s is not None:
        yield note(
            f"The longer part of SC-B is {quantity(exchange.least_s, 's')}: computing "
            f"{quantity(exchange.compute_s, 's')}, communication {quantity(exchange.communication_s, 's')}."
        )


def _verdict(row: OverlapRow) -> Chip | None:
    result = row.result
    if result is None:
        return Chip("the base") if row.group.cell.strategy == BLOCKING and row.group.ok else None
    if result.over_subscribed:
        return Chip("open: shared cores", "warn", result.reason)
    if not result.shown:
        return Chip("open: within noise", "plain", result.reason)
    shorter = result.ratio.value < 1
    return Chip("shorter" if shorter else "longer", "good" if shorter else "plain", result.reason)


def _chart(context: Context, exchange: Exchange, label: Column[OverlapRow], number: int) -> Part:
    """Stack computing and waiting of each variant that tells both."""
    complete = [
        row
        for row in exchange.rows
        if not row.group.wrong and all(median_of(row.group, name) is not None for name in _PARTS)
    ]
    if not complete:
        return None
    scale = scale_for([median_of(row.group, "step_time") for row in complete], "s")
    styles = {name: context.styles.get(part) for name, part in _PARTS.items()}
    bars = [
        Bar(
            label=" · ".join(filter(None, [row.variant, str(label.entry(row))]))
            + (" ○" if row.group.over_subscribed else ""),
            parts=[((median_of(row.group, name) or 0.0) / scale.factor, styles[name]) for name in _PARTS],
            right=quantity(median_of(row.group, "step_time"), "s"),
            about=row.group,
        )
        for row in complete
    ]
    title = point_title([row.group for row in exchange.rows])
    return drawn(
        bar_plot(bars, title=f"medians of a step's parts ({scale.unit})"),
        complete,
        [
            words("Variant", lambda row: row.variant or None),
            label,
            medians("Compute", "compute_time", in_unit("s")),
            medians("Waited", "communication_time", in_unit("s")),
        ],
        title="What a step is made of",
        name=f"exchange-{number}",
        alt=f"{title}: computing and waiting of {len(bars)} ways. First: {bars[0].label}, {bars[0].right}.",
        legend=legend(
            [("computing", styles["compute_time"]), ("waiting for messages", styles["communication_time"])], line=False
        ),
        notes=["○ ranks share cores, no claim." if any(r.group.over_subscribed for r in complete) else ""],
    )
