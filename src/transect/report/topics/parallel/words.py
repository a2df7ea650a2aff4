"""What ways to train are called in sentences on them."""

from __future__ import annotations

from transect.analysis.labels import word
from transect.analysis.scaling import TrainGroup
from transect.report.engine.text import clean, count


def strategy_words(group: TrainGroup) -> str:
    """Name a strategy with its options: `an MPI pipeline (micro_batches 4)`."""
    name = word("strategy", group.cell.strategy)
    options = ", ".join(f"{option} {value}" for option, value in group.cell.options)
    return clean(f"{name} ({options})" if options else name)


def scope_of(group: TrainGroup, *, workload: bool = False) -> str:
    """Say what groups of a point have in common, after their `workload` where nothing else names it."""
    cell = group.cell
    ranks = f"{cell.nodes}x{cell.ranks_per_node} ranks" if cell.nodes > 1 else count(cell.ranks, "rank")
    parts = [cell.workload] if workload else []
    parts += [word("framework", cell.framework), f"batch {cell.batch}", ranks]
    parts += [f"{cell.threads} threads each"] if cell.threads > 1 else []
    parts += [f"over {cell.network}"] if cell.network else []
    parts += [group.kind.words] if group.kind.words else []
    return clean(", ".join(parts))
