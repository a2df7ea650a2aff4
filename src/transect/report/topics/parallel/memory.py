"""Training past the memory: what each way to treat activations needs, costs and makes possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors, grouped
from transect.analysis.labels import word
from transect.analysis.parallelism import STEP
from transect.analysis.scaling import TrainGroup
from transect.domain.record import Cause, Status
from transect.report.engine.blocks import Chip, Column, Explained, Lead, Part, digits, table, words
from transect.report.engine.columns import ended
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import doubt_words, ratio_words, verdict_chip
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import clean, count, factor, in_unit, quantity, scale_for, spread, with_ends
from transect.report.topics.parallel.words import strategy_words
from transect.stats.comparisons import Confidence
from transect.stats.samples import Summary, summarise

PLAIN = "plain"
# What tells a run's numbers from another's, to the last digit.
_DIGITS = ("final_loss", "loss_deviation", "weights_deviation")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRow:
    """One group of a sweep, whose groups differ in batch, memory and budget alone.

    `beside_fitting` sets its time per sample beside that of plain memory at the largest batch that
    fits into its budget, `beside_free` beside that of plain memory without a budget at its own batch.
    """

    group: TrainGroup
    beside_fitting: Contrast | None
    beside_free: Contrast | None

    @property
    def times_what_fits(self) -> float | None:
        """Its batch over the largest that fits; None where that is not known."""
        if self.beside_fitting is None or not self.group.cell.batch:
            return None
        fitting = self.beside_fitting.base.cell.batch
        return self.group.cell.batch / fitting if fitting else None


def per_sample(group: TrainGroup) -> list[float]:
    """Return the seconds of a step over its global batch, of every usable repeat."""
    return [value / group.cell.batch for value in group.values(STEP)] if group.cell.batch else []


def _ran_out(group: TrainGroup) -> bool:
    """Whether a repeat ended for want of memory."""
    return any(record.status is Status.FAILED and record.cause is Cause.OUT_OF_MEMORY for record in group.records)


def _fits(group: TrainGroup) -> bool:
    return bool(group.ok) and not group.wrong and not _ran_out(group)


def _plain(groups: Iterable[TrainGroup], budget: int | None) -> list[TrainGroup]:
    return [g for g in groups if g.cell.memory == PLAIN and g.cell.memory_budget == budget]


def _largest(groups: Iterable[TrainGroup], budget: int | None) -> TrainGroup | None:
    """Return the group of the largest batch that plain memory trained right within a budget, or None."""
    able = filter(_fits, _plain(groups, budget))
    return max(able, key=lambda group: (group.cell.batch, group.cell.id), default=None)


def sweeps(groups: Iterable[TrainGroup], floors: Floors, *, asked: bool = False) -> list[list[MemoryRow]]:
    """Return the rows of each training of which some cell has another memory, or a budget: the tightest budget first."""
    alike = grouped(groups, lambda group: group.cell.apart_from("memory", "memory_budget", "batch"))
    return [
        [_memory_row(group, members, floors, asked) for group in sorted(members, key=_order)]
        for members in alike.values()
        if any(g.cell.memory != PLAIN or g.cell.memory_budget is not None for g in members)
    ]


def _order(group: TrainGroup) -> tuple[float, int, bool, str, str]:
    """The tightest budget first, then by batch, plain before the others."""
    cell = group.cell
    budget = float("inf") if cell.memory_budget is None else float(cell.memory_budget)
    return budget, cell.batch, cell.memory != PLAIN, cell.memory, cell.id


def _memory_row(group: TrainGroup, members: Sequence[TrainGroup], floors: Floors, asked: bool) -> MemoryRow:
    free = [rival for rival in _plain(members, None) if rival.cell.batch == group.cell.batch]

    def against(rival: TrainGroup | None) -> Contrast | None:
        if rival is None or rival is group or not _fits(group) or median(rival, STEP) is None:
            return None
        return contrast(group, rival, floors, STEP, varies="memory", of=per_sample, asked=asked)

    return MemoryRow(
        group=group,
        beside_fitting=against(_largest(members, group.cell.memory_budget)),
        beside_free=against(free[0] if free else None),
    )


def memory_findings(context: Context) -> list[Finding]:
    """Per sweep and budget: how many times the batch that fits trains, and at what time per sample."""
    return [
        _past([row for row in rows if row.group.cell.memory_budget == budget], budget)
        for workload in context.workloads("train")
        for rows in sweeps(context.of("train", workload), context.floors, asked=context.asks("memory"))
        for budget in dict.fromkeys(row.group.cell.memory_budget for row in rows)
        if budget is not None
    ]


def _name(rows: Sequence[MemoryRow]) -> str:
    cell = rows[0].group.cell
    return clean(f"{word('framework', cell.framework)}, {strategy_words(rows[0].group)}, {count(cell.ranks, 'rank')}")


def _past(rows: Sequence[MemoryRow], budget: int) -> Finding:
    groups = [row.group for row in rows]
    fitting = _largest(groups, budget)
    scope = f"{_name(rows)}, within {quantity(float(budget), 'B')}"
    told = partial(Finding, subject=str(groups[0].cell.workload), scope=scope, kind="memory")
    able = [
        (row, row.beside_fitting) for row in rows if row.beside_fitting is not None and row.group.cell.memory != PLAIN
    ]
    if fitting is None or not able:
        why = "plain memory trains no batch that was asked for"
        if fitting is not None:
            why = f"batch {fitting.cell.batch} fits in plain memory, and no other memory trained there"
        return told(
            confidence=Confidence.INCONCLUSIVE,
            claim=f"how far past the memory it trains is not known: {why}.",
            evidence="see the cells below",
        )
    row, result = max(able, key=lambda it: (it[0].group.cell.batch, -it[1].ratio.value, it[0].group.cell.id))
    too_large = min((group.cell.batch for group in _plain(groups, budget) if _ran_out(group)), default=None)
    free = row.beside_free
    return told(
        named=True,
        claim=f"{clean(row.group.cell.memory)} trains batch {row.group.cell.batch}, "
        f"{factor(row.times_what_fits or 1.0)} times what fits in plain memory, and each sample takes "
        f"{ratio_words(result)} as long as at the batch that fits{doubt_words(result)}.",
        confidence=limited_confidence(
            Confidence.INCONCLUSIVE if too_large is None else result.confidence, row.group, fitting
        ),
        contrasts=(result,) if free is None else (result, free),
        evidence=joined(
            "no larger batch was asked of plain memory, so more may fit"
            if too_large is None
            else f"plain memory runs out at batch {too_large}",
            result.reason,
            ""
            if free is None
            else f"without a limit plain memory trains that batch, and what is bounded takes {ratio_words(free)} as long",
        ),
    )


def memory_body(context: Context) -> Iterator[Part]:
    """List each sweep of batch, memory and budget; nothing without one."""
    asked = context.asks("memory")
    trained = [context.of("train", name) for name in context.workloads("train")]
    found = [rows for groups in trained for rows in sweeps(groups, context.floors, asked=asked)]
    if not found:
        return
    yield Lead(
        "What becomes of activations between the forward and the backward pass, under a limit that the operating system "
        "enforces: what does not fit ends as out-of-memory."
    )
    for rows in found:
        yield _table(rows)
    yield Explained(
        "Time per sample is the step over the batch, beside plain memory at the largest batch that fits into the same "
        "budget, and beside plain memory without a budget at the same batch. Same digits: final loss and distances to the "
        "reference are those of plain memory, bit by bit."
    )


def _table(rows: Sequence[MemoryRow]) -> Part:
    scale = scale_for([_median(row) for row in rows], "s")
    plain = {
        (row.group.cell.batch, row.group.cell.memory_budget): row.group
        for row in rows
        if row.group.cell.memory == PLAIN
    }

    def budget(row: MemoryRow) -> str:
        limit = row.group.cell.memory_budget
        return "no limit" if limit is None else quantity(limit, "B")

    def same_digits(row: MemoryRow) -> Chip | None:
        cell = row.group.cell
        base = plain.get((cell.batch, None)) or plain.get((cell.batch, cell.memory_budget))
        if cell.memory == PLAIN or base is None or not row.group.ok or not base.ok:
            return None
        both = [(row.group.by_repeat(name), base.by_repeat(name)) for name in _DIGITS]
        pairs = [(own[repeat], its[repeat]) for own, its in both for repeat in own.keys() & its.keys()]
        return Chip("yes", "good") if pairs and all(a == b for a, b in pairs) else Chip("no", "warn")

    columns: list[Column[MemoryRow]] = [
        words("Budget", budget),
        digits("Batch", lambda row: row.group.cell.batch),
        words("Memory", lambda row: row.group.cell.memory),
        words("Outcome", _outcome),
        digits("Held in a step", lambda row: _memory_bytes(row.group, "step_bytes"), in_unit("B")),
        digits("Offloaded", lambda row: _memory_bytes(row.group, "offloaded_bytes"), in_unit("B")),
        digits(f"Per sample ({scale.unit})", _median, scale),
        digits("Range or interval", lambda row: spread(_summary(row), scale)),
        digits("Runs", lambda row: found.count if (found := _summary(row)) else 0),
        digits("Times what fits", lambda row: row.times_what_fits, factor),
        digits("Beside what fits", lambda row: _ratio(row.beside_fitting)),
        digits("Beside no limit", lambda row: _ratio(row.beside_free)),
        words("Verdict", _mark),
        words("Same digits", same_digits),
    ]
    what = f"{rows[0].group.cell.workload}, {_name(rows)}"
    return table(rows, columns, caption=f"{what}: the tightest budget first, then by batch")


def _ratio(result: Contrast | None) -> str | None:
    return with_ends(result.ratio) if result is not None else None


def _summary(row: MemoryRow) -> Summary | None:
    """Summarise the times per sample of the runs that a comparison counts."""
    batch = row.group.cell.batch
    return summarise(step / batch for step in row.group.counted(STEP)) if batch else None


def _median(row: MemoryRow) -> float | None:
    summary = _summary(row)
    return summary.median if summary else None


def _memory_bytes(group: TrainGroup, name: str) -> float | None:
    """Return a number of the last step's memory, of the rank that has most, or None."""
    ranks = group.ok[0].details.get("memory") if group.ok else None
    values = [rank[name] for rank in ranks if isinstance(rank, dict) and name in rank] if ranks else []
    return float(max(values)) if values else None


def _outcome(row: MemoryRow) -> Chip:
    if row.group.wrong:
        return Chip("wrong result", "bad")
    if row.group.ok and not _ran_out(row.group):
        return Chip("trained", "good")
    return ended(next((record for record in row.group.records if record.cause), row.group.records[0]))


def _mark(row: MemoryRow) -> Chip | None:
    if row.group.over_subscribed:
        return Chip("not known: shared cores", "warn")
    result = row.beside_fitting or row.beside_free
    return Chip("disturbed", "warn") if row.group.disturbed and result is None else verdict_chip(result)
