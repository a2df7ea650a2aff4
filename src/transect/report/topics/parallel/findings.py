"""Findings on ranks that share a model, on exchanges that overlap, and on training past the memory."""

from __future__ import annotations

from transect.analysis.parallelism import Beside, Rivalry, median_of, rivalries
from transect.analysis.scaling import TrainGroup
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence
from transect.report.engine.text import clean, count, ends, factor, percent, quantity
from transect.report.topics.parallel.out_of_core import PLAIN, MemoryRow, Sweep, sweeps
from transect.report.topics.parallel.overlapped import Exchange, OverlapRow, exchanges
from transect.stats.comparisons import Confidence


def strategy_words(group: TrainGroup | Sweep) -> str:
    """Name a strategy with its options: `mpi-pipeline (micro_batches 4)`."""
    cell = group.cell
    options = ", ".join(f"{name} {value}" for name, value in cell.options)
    return clean(f"{cell.strategy} ({options})" if options else cell.strategy)


def scope_of(group: TrainGroup) -> str:
    """Say what groups of a point have in common."""
    cell = group.cell
    ranks = f"{cell.nodes}x{cell.ranks_per_node} ranks" if cell.nodes > 1 else count(cell.ranks, "rank")
    parts = [cell.framework, f"batch {cell.batch}", ranks]
    parts += [f"{cell.threads} threads each"] if cell.threads > 1 else []
    parts += [f"over {cell.network}"] if cell.network else []
    parts += [group.kind.words] if group.kind.words else []
    return clean(", ".join(parts))


def times_of(result: Beside) -> str:
    """Write a ratio with its ends."""
    return f"{factor(result.ratio.value)} times ({ends(result.ratio, factor)})"


def doubt_of(result: Beside) -> str:
    """Say why a ratio decides nothing; empty where it does."""
    if result.over_subscribed:
        return "; ranks share cores, so this decides nothing"
    return "" if result.shown else "; these runs cannot tell the two apart"


def pipeline_findings(context: Context) -> list[Finding]:
    """Per point: the best way to share a model beside the best way to share the data alone."""
    return [
        _rivalry(rivalry)
        for workload in context.workloads("train")
        for rivalry in rivalries(context.of("train", workload), context.floors)
    ]


def _rivalry(rivalry: Rivalry) -> Finding:
    result, parts = rivalry.result, rivalry.division
    what = (
        f"{count(parts.replicas, 'replica')} of {parts.parts} parts"
        if parts.hybrid
        else f"one model in {parts.parts} parts"
    )
    bubble, overlap = median_of(rivalry.best, "bubble"), median_of(rivalry.best, "overlap")
    ideal = parts.bubble
    return Finding(
        subject=str(rivalry.best.cell.workload),
        scope=scope_of(rivalry.best),
        kind="pipeline",
        named=True,
        claim=f"{strategy_words(rivalry.best)}, {what}, takes {times_of(result)} the step of "
        f"{strategy_words(rivalry.rival)}, the best that shares the data alone{doubt_of(result)}.",
        confidence=limited_confidence(result.confidence, rivalry.best, rivalry.rival),
        evidence=joined(
            f"steps {quantity(median_of(rivalry.best, 'step_time'), 's')} and "
            f"{quantity(median_of(rivalry.rival, 'step_time'), 's')}",
            f"bubble {percent(bubble)}" + (f", of equal stages {percent(ideal)}" if ideal is not None else "")
            if bubble is not None
            else "",
            f"{percent(overlap)} of its messages hide behind computing" if overlap is not None else "",
            result.reason,
        ),
        comparisons=result.comparisons,
    )


def exchange_findings(context: Context) -> list[Finding]:
    """Per point: the shortest of the overlapping variants beside the blocking one."""
    return [
        finding
        for workload in context.workloads("train")
        for exchange in exchanges(context.of("train", workload), context.floors)
        if (finding := _exchange(exchange)) is not None
    ]


def _exchange(exchange: Exchange) -> Finding | None:
    variants = [
        (row.result.ratio.value, row.group.cell.id, row)
        for row in exchange.rows
        if row.result is not None and row.variant and not row.group.wrong
    ]
    if not variants or exchange.base is None:
        return None
    row: OverlapRow = min(variants, key=lambda each: each[:2])[2]
    assert row.result is not None
    result = row.result.chosen_of(len(variants))
    overlap = median_of(row.group, "overlap")
    least = (
        f"; {factor(row.over_least)} times the longer of its computing and its communication"
        if row.over_least is not None
        else ""
    )
    return Finding(
        subject=str(row.group.cell.workload),
        scope=scope_of(row.group),
        kind="exchange",
        claim=f"{row.variant} by {strategy_words(row.group)} takes {times_of(result)} the step of "
        f"SC-B by {strategy_words(exchange.base)}{least}{doubt_of(result)}.",
        confidence=limited_confidence(result.confidence, row.group, exchange.base),
        comparisons=result.comparisons,
        evidence=joined(
            f"SC-B computes {quantity(exchange.compute_s, 's')} and communicates {quantity(exchange.communication_s, 's')}",
            f"{percent(overlap)} of the messages hide" if overlap is not None else "",
            result.reason,
        ),
    )


def memory_findings(context: Context) -> list[Finding]:
    """Per sweep and budget: how many times the batch that fits trains, and at what time per sample."""
    return [
        finding
        for workload in context.workloads("train")
        for sweep in sweeps(context.of("train", workload), context.floors)
        for budget in sweep.budgets
        if (finding := _past(sweep, budget)) is not None
    ]


def _past(sweep: Sweep, budget: int) -> Finding | None:
    fitting = sweep.largest(PLAIN, budget)
    limit = quantity(float(budget), "B")
    able = [
        row
        for row in sweep.rows
        if row.fits
        and row.group.cell.memory_budget == budget
        and row.beside_fitting is not None
        and row.group.cell.memory != PLAIN
    ]
    subject, ranks = str(sweep.cell.workload), count(sweep.cell.ranks, "rank")
    scope = clean(f"{sweep.cell.framework}, {strategy_words(sweep)}, {ranks}, within {limit}")
    if fitting is None or not able:
        why = (
            "plain memory trains no batch that was asked for"
            if fitting is None
            else (f"batch {fitting.cell.batch} fits in plain memory, and no other memory trained there")
        )
        return Finding(
            subject=subject,
            scope=scope,
            kind="memory",
            confidence=Confidence.INCONCLUSIVE,
            claim=f"how far past the memory it trains is not known: {why}.",
            evidence="see the cells below",
        )
    row: MemoryRow = max(able, key=lambda row: (row.group.cell.batch, -_ratio(row), row.group.cell.id))
    result = row.beside_fitting
    assert result is not None
    too_large = sweep.too_large(PLAIN, budget)
    checked = (
        f"plain memory runs out at batch {too_large.cell.batch}"
        if too_large is not None
        else "no larger batch was asked of plain memory, so more may fit"
    )
    return Finding(
        subject=subject,
        scope=scope,
        kind="memory",
        named=True,
        claim=f"{clean(row.group.cell.memory)} trains batch {row.group.cell.batch}, "
        f"{factor(row.times_what_fits or 1.0)} times what fits in plain memory, and each sample takes "
        f"{times_of(result)} as long as at the batch that fits{doubt_of(result)}.",
        confidence=limited_confidence(
            result.confidence if too_large is not None else Confidence.INCONCLUSIVE, row.group, fitting
        ),
        comparisons=(*result.comparisons, *(row.beside_free.comparisons if row.beside_free is not None else ())),
        evidence=joined(
            checked,
            result.reason,
            f"without a limit plain memory trains that batch, and what is bounded takes "
            f"{times_of(row.beside_free)} as long"
            if row.beside_free is not None
            else "",
        ),
    )


def _ratio(row: MemoryRow) -> float:
    return row.beside_fitting.ratio.value if row.beside_fitting is not None else 0.0
