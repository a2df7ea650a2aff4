"""Storage as a bound: how long reading an epoch's data and writing a checkpoint take at least, beside what was measured."""

from __future__ import annotations

from transect.analysis.storage import StorageBound, StorageRate, storage_bounds, storage_rates
from transect.report.engine.blocks import Column, Table, digits, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined
from transect.report.engine.text import clean, in_unit, percent, quantity
from transect.stats.comparisons import Confidence


def _found(context: Context) -> tuple[dict[str, StorageRate], list[StorageBound]]:
    rates = storage_rates(context.records)
    return rates, storage_bounds(context.of("train"), context.of("retrain"), rates) if rates else []


def _from(rate: StorageRate) -> str:
    return f"{quantity(rate.value, 'B/s')} ({clean(rate.benchmark)}, {clean(rate.phase)})"


def storage_table(context: Context) -> Table | None:
    """List each workload's least times on this storage; None without a benchmark of it or a training."""
    rates, bounds = _found(context)
    if not bounds:
        return None
    seconds = in_unit("s")
    columns: list[Column[StorageBound]] = [
        words("Workload", lambda bound: clean(bound.group.cell.workload or "")),
        digits("Training data", lambda bound: bound.epoch_bytes, in_unit("B")),
        digits("Read once, at least", lambda bound: bound.read_s, seconds),
        digits("Getting batches, an epoch", lambda bound: bound.input_s, seconds),
        digits("Fastest epoch", lambda bound: bound.epoch_s, seconds),
        digits("Weights and optimiser", lambda bound: bound.state_bytes, in_unit("B")),
        digits("Checkpoint, at least", lambda bound: bound.write_s, seconds),
    ]
    if any(bound.checkpoint_s is not None for bound in bounds):
        columns.append(digits("Checkpoint, measured", lambda bound: bound.checkpoint_s, seconds))
    best = " and ".join(f"{way} at best {_from(rates[way])}" for way in ("read", "write") if way in rates)
    return table(
        bounds,
        columns,
        caption=f"What storage allows, {best}. Rates of one call at a time for each rank: many readers may get more",
    )


def storage_findings(context: Context) -> list[Finding]:
    """Say of the workload that its storage would limit most how near that is; empty without a bound of reading."""
    rates, bounds = _found(context)
    shares = [(bound.read_s / bound.epoch_s, bound) for bound in bounds if bound.read_s and bound.epoch_s > 0]
    if not shares:
        return []
    share, bound = max(shares, key=lambda case: case[0])
    claim = f"reading its training data once takes at least {quantity(bound.read_s, 's')} from this storage, "
    claim += f"{percent(share)} of its fastest epoch"
    if share >= 1:
        claim += (
            ": sooner than any benchmark of this study read, as from memory; where it is full, storage sets the pace"
        )
    written = f"a checkpoint of {quantity(bound.state_bytes, 'B')} at least {quantity(bound.write_s, 's')}"
    evidence = joined(
        f"{quantity(bound.epoch_bytes, 'B')} at {_from(rates['read'])}, epoch {quantity(bound.epoch_s, 's')}",
        f"{written} at {_from(rates['write'])}" if bound.write_s else "",
    )
    return [
        Finding(
            subject=bound.group.cell.workload or "study",
            claim=f"{claim}.",
            evidence=evidence,
            confidence=Confidence.PROVISIONAL,
            kind="storage",
            groups=(bound.group,),
        )
    ]
