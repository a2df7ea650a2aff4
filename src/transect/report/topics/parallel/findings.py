"""Findings on ranks that share a model, on exchanges that overlap, and on training past the memory."""

from __future__ import annotations

from transect.analysis.labels import word
from transect.analysis.parallelism import Rivalry, median_of, rivalries
from transect.analysis.scaling import TrainGroup
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import doubt_words, ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence
from transect.report.engine.text import clean, count, factor, percent, quantity
from transect.report.topics.parallel.out_of_core import PLAIN, MemoryRow, Sweep, sweeps
from transect.report.topics.parallel.overlapped import Exchange, OverlapRow, exchanges
from transect.stats.comparisons import Confidence


def strategy_words(group: TrainGroup | Sweep) -> str:
    """Name a strategy with its options: `an MPI pipeline (micro_batches 4)`."""
    name = word("strategy", group.cell.strategy)
    options = ", ".join(f"{option} {value}" for option, value in group.cell.options)
    return clean(f"{name} ({options})" if options else name)


def scope_of(group: TrainGroup) -> str:
    """Say what groups of a point have in common."""
    cell = group.cell
    ranks = f"{cell.nodes}x{cell.ranks_per_node} ranks" if cell.nodes > 1 else count(cell.ranks, "rank")
    parts = [word("framework", cell.framework), f"batch {cell.batch}", ranks]
    parts += [f"{cell.threads} threads each"] if cell.threads > 1 else []
    parts += [f"over {cell.network}"] if cell.network else []
    parts += [group.kind.words] if group.kind.words else []
    return clean(", ".join(parts))


def pipeline_findings(context: Context) -> list[Finding]:
    """Per point: the best way to share a model beside the best way to share the data alone."""
    return [
        _rivalry(rivalry)
        for workload in context.workloads("train")
        for rivalry in rivalries(context.of("train", workload), context.floors, asked=context.asks("pipeline"))
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
        claim=f"{strategy_words(rivalry.best)}, {what}, takes {ratio_words(result)} the step of "
        f"{strategy_words(rivalry.rival)}, the best that shares the data alone{doubt_words(result)}.",
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
        contrasts=(result,),
    )


def exchange_findings(context: Context) -> list[Finding]:
    """Per point: the shortest of the overlapping variants beside the blocking one."""
    return [
        finding
        for workload in context.workloads("train")
        for exchange in exchanges(context.of("train", workload), context.floors, asked=context.asks("exchange"))
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
    result = row.result
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


def memory_findings(context: Context) -> list[Finding]:
    """Per sweep and budget: how many times the batch that fits trains, and at what time per sample."""
    return [
        finding
        for workload in context.workloads("train")
        for sweep in sweeps(context.of("train", workload), context.floors, asked=context.asks("memory"))
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
    scope = clean(f"{word('framework', sweep.cell.framework)}, {strategy_words(sweep)}, {ranks}, within {limit}")
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
        f"{ratio_words(result)} as long as at the batch that fits{doubt_words(result)}.",
        confidence=limited_confidence(
            result.confidence if too_large is not None else Confidence.INCONCLUSIVE, row.group, fitting
        ),
        contrasts=tuple(found for found in (result, row.beside_free) if found is not None),
        evidence=joined(
            checked,
            result.reason,
            f"without a limit plain memory trains that batch, and what is bounded takes "
            f"{ratio_words(row.beside_free)} as long"
            if row.beside_free is not None
            else "",
        ),
    )


def _ratio(row: MemoryRow) -> float:
    return row.beside_fitting.ratio.value if row.beside_fitting is not None else 0.0
