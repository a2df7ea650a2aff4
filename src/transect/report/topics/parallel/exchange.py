"""Section: how weights reach ranks and gradients come back, and what of it hides behind computing."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.parallelism import median_of
from transect.report.engine.blocks import Column, Explained, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.columns import MARKS, NOT_TOLD, labelled, medians, metric_columns
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns
from transect.report.engine.text import factor, in_unit, percent, quantity, scale_for
from transect.report.topics.parallel.overlapped import BLOCKING, Exchange, OverlapRow, exchanges
from transect.report.topics.parallel.pipelines import point_title


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
        "One step, brought about in different ways: a blocking broadcast and reduce (SC-B), a broadcast that each layer "
        "waits for (SC-OB), a reduction of each layer while the one before it computes (SC-OBR), in groups (hierarchical)."
    )
    for exchange in found:
        groups = [row.group for row in exchange.rows]
        yield Heading(point_title(groups))
        yield from _exchange(exchange)
    yield Explained(
        "Waited: what is left when nothing is computed any more. Under way: between a message's start and end, hidden or "
        "not. Overlap: the share that hid. Over the longer part: the step over the longer of computing and communication "
        "of SC-B, below which no overlap gets."
    )


def _exchange(exchange: Exchange) -> Iterator[Part]:
    groups = [row.group for row in exchange.rows]
    label = labelled(groups, "Strategy", never=("ranks", "nodes", "framework", "workload", "batch"))
    scale = scale_for([median_of(group, "step_time") for group in groups], "s")
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
            *contrast_columns("Beside SC-B", lambda row: row.result),
            digits("Over the longer part", lambda row: row.over_least, factor),
        ]
    without = f"; {BLOCKING} did not run here, so nothing stands beside SC-B"
    yield table(exchange.rows, [*columns, MARKS], caption="Variants" + ("" if exchange.base is not None else without))
    if exchange.least_s is not None:
        yield note(
            f"The longer part of SC-B is {quantity(exchange.least_s, 's')}: computing "
            f"{quantity(exchange.compute_s, 's')}, communication {quantity(exchange.communication_s, 's')}."
        )
