"""What a whole comparison comes to: one word, from which a script decides."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.log_runs import READS
from transect.analysis.result_sets import PENDING
from transect.analysis.set_lines import Beside, Line, Outcome
from transect.domain.cell import Cell
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer


def outcome_of(besides: Sequence[Beside], *, provisional: bool = False) -> Outcome:
    """Return the one word for all sets: worse as soon as a line is, the same where nothing else of what was measured is confirmed.

    Not comparable without any line that compares, open where none of them is confirmed. `provisional`: what is
    worse counts without being confirmed, in one cell or in a stage as a whole.
    """
    lines = [line for beside in besides for line in beside.lines]
    if any(line.outcome is Outcome.WORSE and (provisional or _confirmed(line)) for line in lines):
        return Outcome.WORSE
    if provisional and wholly_worse(besides):
        return Outcome.WORSE
    compared = [line for line in lines if line.outcome is not Outcome.NOT_COMPARABLE]
    if not compared:
        return Outcome.NOT_COMPARABLE
    if any(line.outcome is Outcome.BETTER and _confirmed(line) for line in compared):
        return Outcome.BETTER
    # That a file has the size that it had says nothing of what was measured.
    measured = [line for line in compared if not line.fact] or compared
    return Outcome.SAME if any(map(_confirmed, measured)) else Outcome.OPEN


def wholly_worse(besides: Sequence[Beside]) -> int:
    """Count the stages of all sets whose cells became worse together in a metric."""
    return len(
        {
            (place, shift.stage)
            for place, beside in enumerate(besides)
            for shift in beside.shifts
            if shift.worse and shift.decision.answer is Answer.DIFFERENT
        }
    )


def _confirmed(line: Line) -> bool:
    return line.confidence is Confidence.CONFIRMED


def incomplete(besides: Sequence[Beside]) -> int:
    """Count the base's cells that were not compared: refused, copied, not comparable, or not there or damaged on a side.

    Cells without any number, such as those that make data, have nothing to be compared by.
    """
    amount = 0
    for beside in besides:
        pairing = beside.pairing
        lost = [alone.group for alone in pairing.only_base]
        lost += [pairing_refused.pair.base for pairing_refused in pairing.refused]
        # Of logs that were read again there is nothing more to compare.
        lost += [pair.base for pair in pairing.copied if pair.base.cell.stage != READS]
        # The base has such a cell, and nothing of it that can be used.
        lost += [alone.group for alone in pairing.only_other if alone.state in PENDING]
        amount += sum(any(record.metrics for record in group.ok) for group in lost)
        compared_cells: dict[Cell, bool] = {}
        for line in beside.lines:
            known = compared_cells.get(line.cell, False)
            compared_cells[line.cell] = known or line.outcome is not Outcome.NOT_COMPARABLE
        amount += sum(not compared for compared in compared_cells.values())
    return amount
