"""One training with several batches: what each sends in an epoch, and until it has learnt as much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors, Group, grouped
from transect.analysis.parallelism import median_of
from transect.analysis.scaling import TrainGroup
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
    per_epoch, step = group.detail("steps_per_epoch"), median_of(group, "step_time")
    waited = median_of(group, _WAITED)
    each, steps = group.by_repeat(_WAITED), group.by_repeat("steps_to_quality")
    # A run that did not reach it took infinitely many.
    able = len(steps) == len(group.ok)
    return BatchRow(
        group=group,
        share=median_of(group, "communication_share"),
        epoch_s=per_epoch * step if per_epoch and step is not None else None,
        waited_s=per_epoch * waited if per_epoch and waited is not None else None,
        to_quality={seed: each[seed] * steps[seed] for seed in each if able and seed in steps},
        steps=steps if able else {},
    )


def _sweep(rows: tuple[BatchRow, ...], floors: Floors, asked: bool) -> BatchSweep:
    reached = [row for row in rows if row.reached]
    if len(reached) < 2:
        return BatchSweep(rows=rows, best=None, result=None)
    first, best = reached[0], min(reached, key=lambda row: (_middle(row), row.batch))
    rival = first if best is not first else min(reached[1:], key=_middle)

    def of(group: Group[Any]) -> list[float]:
        # Of its quiet runs, where there are enough.
        return [*_row(group).to_quality.values()]

    result = contrast(
        best.group, rival.group, floors, _WAITED, varies="batch", of=of, candidates=len(reached), asked=asked
    )
    return BatchSweep(rows=rows, best=best, result=result)


def middle_of(by_seed: dict[int, float]) -> float | None:
    """Return the middle of values by seed, as comparisons have it; None without any."""
    return middle([*by_seed.values()]) if by_seed else None


def _middle(row: BatchRow) -> float:
    return middle([*row.to_quality.values()])
