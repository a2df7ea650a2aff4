"""Did the machine change while a study ran? Its first third compared with its last, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from transect.analysis.groups import Group, grouped
from transect.domain.until import MARGIN
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding
from transect.report.engine.text import count, percent
from transect.stats.comparisons import Confidence
from transect.stats.estimates import RATIO
from transect.stats.noise import middle
from transect.stats.verdicts import Answer, Chance, Decision, decide_paired

_TIMES = {
    "train": ("step_time", "time of a training step"),
    "infer": ("latency", "time of a call"),
    "retrain": ("step_time", "time of a step of retraining"),
}
# Fewer cells that ran in both thirds say nothing about the machine.
_MIN_CELLS = 3


class Drift(NamedTuple):
    """A stage's metric late over early: `decision` is on that ratio, over `cells` seen in both, of all `runs`."""

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
    if len(both) < _MIN_CELLS:
        return None
    # Judged by how the cells differ in it, whatever the noise of each is.
    decision = decide_paired(late, early, None, margin=margin)
    return None if decision is None else Drift(cells=len(both), runs=len(runs), decision=decision)


def _middles(runs: Sequence[tuple[str, int, float]]) -> dict[int, float]:
    of_cell = grouped(runs, lambda run: run[1])
    return {number: middle([value for *_, value in several]) for number, several in of_cell.items()}


def drift_findings(context: Context) -> list[Finding]:
    """Per stage whose times are compared: the last third of its runs beside the first."""
    margin = context.analysis_plan.margin
    found = ((what, drift_of(context.of(stage), name, margin=margin)) for stage, (name, what) in _TIMES.items())
    return [_finding(drift, what, percent(margin)) for what, drift in found if drift is not None]


def _finding(drift: Drift, what: str, margin: str) -> Finding:
    decision = drift.decision
    confidence = Confidence.CONFIRMED
    if decision.answer is Answer.SAME:
        claim = f"the machine stayed as it was: the {what} at the end is that of the beginning within {margin}."
    elif decision.answer is Answer.DIFFERENT:
        more = "more" if decision.ratio > 1 else "less"
        claim = f"the machine drifted: the {what} is {percent(abs(decision.ratio - 1), 1)} {more} at the end than at the beginning."
    else:
        claim, confidence = f"whether the {what} drifted is not known.", Confidence.INCONCLUSIVE
    return Finding(
        subject="study",
        claim=claim,
        evidence=f"{RATIO} {decision.ratio:.3g}, 95 % interval {decision.low:.3g} to {decision.high:.3g}, of "
        f"{count(drift.cells, 'cell')} that ran in the first and in the last third, {count(drift.runs, 'run')} in all",
        confidence=confidence,
        kind="drift",
        tests=(Chance(p=decision.p, p_other=decision.p_other, claimed=decision.answer is not Answer.OPEN),),
    )
