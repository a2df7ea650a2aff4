"""How weights reach ranks and gradients come back, and how much of it hides behind computing.

The variants are those of S-Caffe (A. A. Awan et al., "S-Caffe: co-designing MPI runtimes and Caffe for
scalable deep learning on modern GPU clusters", PPoPP 2017): blocking broadcast and reduce (SC-B), a
non-blocking broadcast per layer (SC-OB), and a reduction per layer beside it (SC-OBR).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors
from transect.analysis.parallelism import STEP, division, points
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Column, Explained, Heading, Lead, Part, digits, table, words
from transect.report.engine.columns import MARKS, NOT_TOLD, labelled, medians, metric_columns
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns, doubt_words, ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import factor, in_unit, percent, quantity, scale_for
from transect.report.topics.parallel.words import scope_of, strategy_words

BLOCKING = "mpi-bcast-reduce"
HIERARCHICAL = "mpi-hierarchical"
# What the published study calls a strategy.
VARIANTS = {BLOCKING: "SC-B", "mpi-overlap-bcast": "SC-OB", "mpi-overlap": "SC-OBR", HIERARCHICAL: "hierarchical"}


@dataclass(frozen=True, kw_only=True, slots=True)
class OverlapRow:
    """One group of an exchange; `result` compares its step with the base's, None for the base itself."""

    group: TrainGroup
    variant: str
    result: Contrast | None
    over_least: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """Groups that do equal work on equal ranks and bring weights and gradients about in different ways.

    `base` is the blocking one, of which `compute_s` and `communication_s` are in s.
    """

    rows: Sequence[OverlapRow]
    base: TrainGroup | None
    compute_s: float | None
    communication_s: float | None


def exchanges(groups: Iterable[TrainGroup], floors: Floors, *, asked: bool = False) -> list[Exchange]:
    """Return one for each point at which a variant ran on several ranks, with all groups of that point."""
    sharing = [
        group for group in groups if group.cell.ranks > 1 and ((layout := division(group)) is None or layout.parts == 1)
    ]
    return [
        _made(members, floors, asked)
        for members in points(sharing)
        if any(group.cell.strategy in VARIANTS for group in members)
    ]


def _made(members: Sequence[TrainGroup], floors: Floors, asked: bool) -> Exchange:
    blocking = [g for g in members if g.cell.strategy == BLOCKING and not g.wrong and g.ok]
    # Its usual options, where it ran with several.
    base = min(blocking, key=lambda group: (len(group.cell.options), group.cell.id), default=None)
    compute = median(base, "compute_time") if base else None
    communication = median(base, "communication_total_time") if base else None
    least = None if compute is None or communication is None else max(compute, communication)
    variants = [group for group in members if group.cell.strategy in VARIANTS]

    def row(group: TrainGroup) -> OverlapRow:
        step = median(group, "step_time")
        result = None
        if base is not None and group is not base:
            # The finding takes the shortest of all but the base.
            several = 2 * max(1, len(variants) - 1)
            result = contrast(group, base, floors, STEP, varies="strategy", candidates=several, asked=asked)
        return OverlapRow(
            group=group,
            variant=VARIANTS.get(group.cell.strategy, ""),
            result=result,
            over_least=step / least if step is not None and least else None,
        )

    order = {name: place for place, name in enumerate(VARIANTS)}
    in_order = sorted(members, key=lambda group: (order.get(group.cell.strategy, len(order)), group.cell.id))
    return Exchange(
        rows=[row(group) for group in in_order], base=base, compute_s=compute, communication_s=communication
    )


def exchange_findings(context: Context) -> list[Finding]:
    """Per point: the shortest of the overlapping variants beside the blocking one."""
    return [
        finding
        for workload in context.workloads("train")
        for exchange in exchanges(context.of("train", workload), context.floors, asked=context.asks("exchange"))
        if (finding := _exchange_finding(exchange)) is not None
    ]


def _exchange_finding(exchange: Exchange) -> Finding | None:
    variants = [
        (row.result.ratio.value, row.group.cell.id, row)
        for row in exchange.rows
        if row.result is not None and row.variant and not row.group.wrong
    ]
    if not variants or exchange.base is None:
        return None
    row: OverlapRow = min(variants, key=lambda each: each[:2])[2]
    assert row.result is not None
    result = row.result
    overlap = median(row.group, "overlap")
    least = (
        f"; {factor(row.over_least)} times the longer of its computing and its communication"
        if row.over_least is not None
        else ""
    )
    return Finding(
        subject=str(row.group.cell.workload),
        scope=scope_of(row.group),
        kind="exchange",
        claim=f"{row.variant} by {strategy_words(row.group)} takes {ratio_words(result)} the step of "
        f"SC-B by {strategy_words(exchange.base)}{least}{doubt_words(result)}.",
        confidence=limited_confidence(result.confidence, row.group, exchange.base),
        contrasts=(result,),
        evidence=joined(
            f"SC-B computes {quantity(exchange.compute_s, 's')} and communicates {quantity(exchange.communication_s, 's')}",
            f"{percent(overlap)} of the messages hide" if overlap is not None else "",
            result.reason,
        ),
    )


def exchange_body(context: Context) -> Iterator[Part]:
    """Draw and list the variants at each point where one ran; nothing without any."""
    found = [
        exchange
        for workload in context.workloads("train")
        for exchange in exchanges(context.of("train", workload), context.floors, asked=context.asks("exchange"))
    ]
    if not found:
        return
    yield Lead(
        "One step, brought about in different ways: a blocking broadcast and reduce (SC-B), a broadcast that each layer "
        "waits for (SC-OB), a reduction of each layer while the one before it computes (SC-OBR), in groups (hierarchical)."
    )
    for exchange in found:
        yield Heading(scope_of(exchange.rows[0].group, workload=True))
        yield from _exchange(exchange)
    yield Explained(
        "Waited: what is left when nothing is computed any more. Under way: between a message's start and end, hidden or "
        "not. Overlap: the share that hid. Over the longer part: the step over the longer of computing and communication "
        "of SC-B, below which no overlap gets."
    )


def _exchange(exchange: Exchange) -> Iterator[Part]:
    groups = [row.group for row in exchange.rows]
    label = labelled(groups, "Strategy", never=("ranks", "nodes", "framework", "workload", "batch"))
    scale = scale_for([median(group, "step_time") for group in groups], "s")
    columns: list[Column[OverlapRow]] = [
        label,
        words("Variant", lambda row: row.variant or None),
        *metric_columns("step_time", scale, "Step"),
        medians(f"Compute ({scale.unit})", "compute_time", scale, NOT_TOLD),
        medians(f"Waited ({scale.unit})", "communication_time", scale, NOT_TOLD),
        medians(f"Under way ({scale.unit})", "communication_total_time", scale, NOT_TOLD),
        medians("Overlap", "overlap", percent, NOT_TOLD),
        digits("Gradient", lambda row: median(row.group, "gradient_bytes"), in_unit("B")),
    ]
    if exchange.base is not None:
        columns += [
            *contrast_columns("Beside SC-B", lambda row: row.result),
            digits("Over the longer part", lambda row: row.over_least, factor),
        ]
    without = f"; {BLOCKING} did not run here, so nothing stands beside SC-B"
    yield table(exchange.rows, [*columns, MARKS], caption="Variants" + ("" if exchange.base is not None else without))
