"""Did the machine change while a study ran? Its first third compared with its last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transect.analysis.groups import Group
from transect.domain.until import MARGIN
from transect.stats.noise import middle
from transect.stats.verdicts import Decision, decide_paired

# Fewer cells that ran in both thirds say nothing about the machine.
MIN_CELLS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    """A stage's metric late over early: `decision` is on that ratio, over `cells` seen in both."""

    stage: str
    metric: str
    cells: int
    runs: int
    decision: Decision


def drift_of(groups: Sequence[Group], metric: str, *, margin: float = MARGIN) -> Drift | None:
    """Compare each cell's repeats in the last third of a stage's runs with those in the first.

    By the order in which they began. A cell is compared with itself alone, so that which cells ran when
    plays no part; None where fewer than three cells have repeats in both thirds.
    """
    runs = sorted(
        (record.started, number, value)
        for number, group in enumerate(groups)
        if not group.over_subscribed and not group.wrong
        for record in group.ok
        if (value := record.value(metric)) is not None and value > 0
    )
    third = len(runs) // 3
    early, late = _middles(runs[:third]), _middles(runs[len(runs) - third :])
    both = early.keys() & late.keys()
    if len(both) < MIN_CELLS:
        return None
    # Judged by how the cells differ in it, whatever the noise of each is.
    decision = decide_paired(late, early, None, margin=margin)
    if decision is None:
        return None
    return Drift(stage=groups[0].cell.stage, metric=metric, cells=len(both), runs=len(runs), decision=decision)


def _middles(runs: Sequence[tuple[str, int, float]]) -> dict[int, float]:
    values: dict[int, list[float]] = {}
    for _, number, value in runs:
        values.setdefault(number, []).append(value)
    return {number: middle(of_run) for number, of_run in values.items()}
