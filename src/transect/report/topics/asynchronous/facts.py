"""Asynchronous updates compared with synchronous training: time to quality, quality, and how stale gradients were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.parallelism import median_of
from transect.analysis.quality import TIME, reaches_target
from transect.analysis.scaling import TrainGroup
from transect.report.engine.context import Context

_SYNCHRONOUS = "mpi-allreduce"


@dataclass(frozen=True, kw_only=True, slots=True)
class Twin:
    """A synchronous training of equal work: on `words`, such as as many ranks.

    `time` compares the times to quality; None where a side did not reach it in every run.
    """

    group: TrainGroup
    words: str
    time: Contrast | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Asynchronous:
    """A group whose gradients are applied as they arrive, and the synchronous groups that it is compared with."""

    group: TrainGroup
    twins: tuple[Twin, ...]

    @property
    def workers(self) -> int:
        """How many ranks compute gradients."""
        return int(_reported(self.group, "workers") or self.group.cell.ranks)

    @property
    def bound(self) -> str:
        """The staleness that is allowed, in steps."""
        bound = _reported(self.group, "staleness_bound")
        return "unbounded" if bound is None else str(bound)

    @property
    def most(self) -> int | None:
        """The largest staleness of any gradient of any repeat, in updates."""
        reported = (record.details["updates"].get("largest_staleness") for record in self.group.ok)
        return max((int(staleness) for staleness in reported if staleness is not None), default=None)


def asynchronous_groups(context: Context, workload: str) -> list[Asynchronous]:
    """Return a workload's groups with asynchronous updates, each with its synchronous twins."""
    groups: Sequence[TrainGroup] = context.of("train", workload)
    return [
        Asynchronous(group=group, twins=tuple(_twins(group, groups, context)))
        for group in groups
        if group.kind.unchecked and _reported(group, "workers") is not None and not group.wrong
    ]


def _reported(group: TrainGroup, name: str) -> int | None:
    for record in group.ok:
        updates = record.details.get("updates")
        if isinstance(updates, dict):
            return updates.get(name)
    return None


def _twins(group: TrainGroup, groups: Iterable[TrainGroup], context: Context) -> list[Twin]:
    """All-reduce on as many ranks, and on as many as work; the server's own synchronous path."""
    cell, workers = group.cell, _reported(group, "workers")
    planned = {(c.group.cell, c.base.cell): c for c in context.contrasts.of("asynchronous", cell.workload)}

    def work(trained: TrainGroup) -> object:
        return trained.cell.apart_from("strategy", "options", "ranks_per_node")

    found = []
    for candidate in groups:
        if candidate.wrong or not candidate.ok or candidate.kind.unchecked or work(candidate) != work(group):
            continue
        ranks, strategy = candidate.cell.ranks, candidate.cell.strategy
        if strategy == cell.strategy and ranks == cell.ranks:
            words = "on as many ranks"
        elif strategy == _SYNCHRONOUS and ranks in (cell.ranks, workers):
            words = "on as many ranks" if ranks == cell.ranks else "on as many ranks as it has workers"
        else:
            continue
        time = planned.get((cell, candidate.cell)) or contrast(
            group, candidate, context.floors, TIME, varies="strategy"
        )
        time = time if reaches_target(group) and reaches_target(candidate) else None
        found.append(Twin(group=candidate, words=words, time=time))
    # On as many ranks is the price of the machine: it comes first.
    return sorted(
        found,
        key=lambda twin: (
            twin.group.cell.strategy != _SYNCHRONOUS,
            twin.group.cell.ranks != cell.ranks,
            twin.group.cell.id,
        ),
    )


def score_of(group: TrainGroup) -> tuple[str, float] | None:
    """Return name and median of the quality that a group ends with, or None."""
    for record in group.ok:
        quality = record.details.get("quality")
        if isinstance(quality, dict) and (value := median_of(group, str(quality.get("metric")))) is not None:
            return str(quality["metric"]), value
    return None
