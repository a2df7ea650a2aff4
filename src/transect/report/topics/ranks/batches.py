"""One training with several batches: what each sends in an epoch, and until it has learnt as much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors, Group, grouped
from transect.analysis.labels import word
from transect.analysis.scaling import TrainGroup
from transect.domain.until import MIN_RUNS
from transect.report.engine.blocks import Chip, Explained, Part, digits, table, words
from transect.report.engine.columns import NOT_TOLD, score_column
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, limited_confidence, names
from transect.report.engine.finding import median as median_of
from transect.report.engine.text import clean, count, factor, number, percent, quantity, scale_for
from transect.report.topics.parallel.words import strategy_words
from transect.stats.comparisons import Confidence
from transect.stats.noise import middle

_WAITED = "communication_time"


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchRow:
    """One batch: seconds of an epoch's steps, seconds of them that a rank waits for messages.

    `to_quality` holds by seed the seconds of waiting until the target was reached, `steps` those steps;
    both are empty where a run did not reach it.
    """

    group: TrainGroup
    epoch_s: float | None
    waited_s: float | None
    share: float | None
    to_quality: dict[int, float]
    steps: dict[int, float]

    @property
    def batch(self) -> int:
        """The global batch."""
        return self.group.global_batch or 0

    @property
    def reached(self) -> bool:
        """Whether every run reached the target."""
        return bool(self.to_quality)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSweep:
    """Rows that differ in their batch alone, the smallest first.

    `best` is the batch that waits least until it has learnt as much, `result` sets it beside the smallest one, or the
    smallest beside the next best. None where fewer than two reach the target.
    """

    rows: tuple[BatchRow, ...]
    best: BatchRow | None
    result: Contrast | None


def batch_sweeps(groups: Iterable[TrainGroup], floors: Floors, *, asked: bool = False) -> list[BatchSweep]:
    """Return the sweeps on several ranks, of more than one batch."""
    able = [
        group
        for group in groups
        if group.cell.ranks > 1
        and group.ok
        and not group.wrong
        and not group.kind.synthetic
        and group.global_batch
        and group.values(_WAITED)
    ]
    found = []
    for members in grouped(able, lambda group: group.cell.apart_from("batch")).values():
        if len({group.global_batch for group in members}) > 1:
            rows = tuple(sorted(map(_row, members), key=lambda row: row.batch))
            found.append(_sweep(rows, floors, asked))
    return found


def _row(group: TrainGroup) -> BatchRow:
    per_epoch, step, waited = group.detail("steps_per_epoch"), median_of(group, "step_time"), median_of(group, _WAITED)
    quiet, steps = group.by_repeat(_WAITED, quiet=True), group.by_repeat("steps_to_quality")
    each = quiet if len(quiet) >= MIN_RUNS else group.by_repeat(_WAITED)
    # A run that did not reach it took infinitely many.
    able = len(steps) == len(group.ok)
    return BatchRow(
        group=group,
        share=median_of(group, "communication_share"),
        epoch_s=per_epoch * step if per_epoch and step is not None else None,
        waited_s=per_epoch * waited if per_epoch and waited is not None else None,
        to_quality={seed: each[seed] * steps[seed] for seed in each if able and seed in steps},
        steps={seed: steps[seed] for seed in each if able and seed in steps},
    )


def _sweep(rows: tuple[BatchRow, ...], floors: Floors, asked: bool) -> BatchSweep:
    reached = [row for row in rows if row.reached]
    if len(reached) < 2:
        return BatchSweep(rows=rows, best=None, result=None)
    first, *others = reached
    best = min(reached, key=lambda row: (middle([*row.to_quality.values()]), row.batch))
    rival = first if best is not first else min(others, key=lambda row: middle([*row.to_quality.values()]))

    def of(group: Group[Any]) -> list[float]:
        # Of its quiet runs, where there are enough.
        return [*_row(group).to_quality.values()]

    result = contrast(
        best.group, rival.group, floors, _WAITED, varies="batch", of=of, candidates=len(reached), asked=asked
    )
    return BatchSweep(rows=rows, best=best, result=result)


def _middle(by_seed: dict[int, float]) -> float | None:
    """Return the middle of values by seed, as comparisons have it; None without any."""
    return middle([*by_seed.values()]) if by_seed else None


def batches_finding(sweep: BatchSweep) -> Finding:
    """Say what the largest batch waits beside the smallest, in an epoch and until it has learnt as much."""
    cell, rows = sweep.rows[0].group.cell, sweep.rows
    low, high = rows[0], rows[-1]
    parts = [word("framework", cell.framework), strategy_words(low.group), count(cell.ranks, "rank")]
    parts += [low.group.kind.words] if low.group.kind.words else []
    scope = clean(", ".join(parts))
    epochs = f"batch {high.batch} instead of {low.batch} waits "
    if None in (high.waited_s, low.waited_s):
        epochs += "a part of an epoch that is not told"
    else:
        epochs += f"{quantity(high.waited_s, 's')} of an epoch for messages instead of {quantity(low.waited_s, 's')}"
    confidence, quality = _batch_quality(sweep)
    return Finding(
        subject=str(cell.workload),
        scope=scope,
        kind="larger-batch",
        confidence=confidence,
        contrasts=() if sweep.result is None else (sweep.result,),
        claim=f"{epochs}; {quality}.",
        evidence=joined(
            "; ".join(f"batch {row.batch}: {_row_words(row)}" for row in rows),
            sweep.result.reason if sweep.result is not None else "",
        ),
    )


def _batch_quality(sweep: BatchSweep) -> tuple[Confidence, str]:
    """Return the confidence, and what of the saving is left at equal quality."""
    reached = [row for row in sweep.rows if row.reached]
    if len(reached) < 2:
        missing = names([f"batch {row.batch}" for row in sweep.rows if not row.reached], 4)
        what = f"at equal quality nothing is known: {missing} did not reach the target in every run"
        return Confidence.INCONCLUSIVE, what
    best, result = sweep.best, sweep.result
    if best is None or result is None or result.better is not best.group:
        return Confidence.INCONCLUSIVE, "which batch waits least until it has learnt as much is not known"
    saving = f"batch {best.batch} waits least, {factor(result.cost.value)} times what batch {reached[0].batch} does"
    if best is reached[0]:
        saving = f"the smallest batch that reaches the target, {best.batch}, waits least"
    return limited_confidence(result.confidence, best.group), f"until it has learnt as much, {saving}"


def _row_words(row: BatchRow) -> str:
    if not row.reached:
        return "target not reached"
    steps, waited = _middle(row.steps) or 0.0, _middle(row.to_quality)
    return f"{number(steps)} steps and {quantity(waited, 's')} of waiting to the target"


def batch_blocks(context: Context) -> Iterator[Part]:
    """List each sweep of batches on several ranks; nothing without any."""
    found = batch_sweeps(context.of("train"), context.floors)
    for sweep in found:
        yield _batch_table(sweep)
    if found:
        yield Explained(
            "Waiting is the part of a step in which a rank does nothing but wait for messages. To the target: over the steps "
            "until the quality target was reached, so what more steps cost is in it; empty where a run did not reach it."
        )


def _batch_table(sweep: BatchSweep) -> Part:
    cell = sweep.rows[0].group.cell
    epoch = scale_for([row.epoch_s for row in sweep.rows], "s")
    waited = scale_for([row.waited_s for row in sweep.rows], "s")
    target = scale_for([_middle(row.to_quality) for row in sweep.rows], "s")
    caption = f"{cell.workload}, {cell.framework}, {strategy_words(sweep.rows[0].group)}, {count(cell.ranks, 'rank')}"
    return table(
        sweep.rows,
        [
            digits("Batch", lambda row: row.batch),
            digits(f"Epoch's steps ({epoch.unit})", lambda row: row.epoch_s, epoch),
            digits(f"Waiting in them ({waited.unit})", lambda row: row.waited_s, waited),
            digits("Share of a step", lambda row: row.share, percent, NOT_TOLD),
            score_column(sweep.rows),
            digits("Steps to the target", lambda row: _middle(row.steps)),
            digits(f"Waiting to the target ({target.unit})", lambda row: _middle(row.to_quality), target),
            words("", lambda row: _batch_mark(sweep, row)),
        ],
        caption=clean(f"{caption}: what a larger batch leaves of the messages"),
    )


def _batch_mark(sweep: BatchSweep, row: BatchRow) -> Chip | None:
    if row.group.over_subscribed:
        return Chip("over-subscribed", "warn")
    if not row.reached:
        return Chip("target not reached", "warn")
    return Chip("waits least to the target") if row is sweep.best else None
