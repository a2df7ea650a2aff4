"""Blocks on batches: what each sends in an epoch, and until it has learnt as much."""

from __future__ import annotations

from collections.abc import Iterator

from transect.analysis.batch_sweeps import BatchRow, BatchSweep, batch_sweeps
from transect.report.blocks import Chip, Part, digits, note, table, words
from transect.report.columns import ACCURACY, NOT_TOLD
from transect.report.context import Context
from transect.report.findings.parallel import strategy_words
from transect.report.text import clean, count, percent, scale_for


def batch_blocks(context: Context) -> Iterator[Part]:
    """List each sweep of batches on several ranks; nothing without any."""
    found = batch_sweeps(context.of("train"), context.floors)
    for one in found:
        yield _table(one)
    if found:
        yield note(
            "Waiting is the part of a step in which a rank does nothing but wait for messages. To the target: over the steps "
            "until the quality target was reached, so what more steps cost is in it; empty where a run did not reach it."
        )


def _table(one: BatchSweep) -> Part:
    cell = one.rows[0].group.cell
    epoch = scale_for([row.epoch_s for row in one.rows], "s")
    waited = scale_for([row.waited_s for row in one.rows], "s")
    target = scale_for([_middle(row.to_quality) for row in one.rows], "s")
    caption = f"{cell.workload}, {cell.framework}, {strategy_words(one.rows[0].group)}, {count(cell.ranks, 'rank')}"
    return table(
        one.rows,
        [
            digits("Batch", lambda row: row.batch),
            digits(f"Epoch's steps ({epoch.unit})", lambda row: row.epoch_s, epoch),
            digits(f"Waiting in them ({waited.unit})", lambda row: row.waited_s, waited),
            digits("Share of a step", lambda row: row.share, percent, NOT_TOLD),
            ACCURACY,
            digits("Steps to the target", lambda row: _middle(row.steps)),
            digits(f"Waiting to the target ({target.unit})", lambda row: _middle(row.to_quality), target),
            words("", lambda row: _mark(one, row)),
        ],
        caption=clean(f"{caption}: what a larger batch leaves of the messages"),
    )


def _middle(by_seed: dict[int, float]) -> float | None:
    values = sorted(by_seed.values())
    if not values:
        return None
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def _mark(one: BatchSweep, row: BatchRow) -> Chip | None:
    if row.group.over_subscribed:
        return Chip("over-subscribed", "warn")
    if not row.reached:
        return Chip("target not reached", "warn")
    return Chip("waits least to the target") if row is one.best else None
