"""What a whole comparison comes to: one word, from which a script decides."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.comparisons import Sureness
from transect.analysis.set_lines import Beside, Line, Outcome
from transect.domain.cell import Cell

__all__ = ["incomplete", "outcome_of"]


def outcome_of(besides: Sequence[Beside], *, tentative: bool = False) -> Outcome:
    """Return the one word for all sets: worse as soon as a line is, the same where nothing else of what was measured is firm.

    Not comparable without any line that compares, open where none of them is firm. `tentative`: what is
    worse counts without being firm.
    """
    lines = [line for beside in besides for line in beside.lines]
    if any(one.outcome is Outcome.WORSE and (tentative or _firm(one)) for one in lines):
        return Outcome.WORSE
    compared = [one for one in lines if one.outcome is not Outcome.NOT_COMPARABLE]
    if not compared:
        return Outcome.NOT_COMPARABLE
    if any(one.outcome is Outcome.BETTER and _firm(one) for one in compared):
        return Outcome.BETTER
    # That a file has the size that it had says nothing of what was measured.
    measured = [one for one in compared if not one.fact] or compared
    return Outcome.SAME if any(map(_firm, measured)) else Outcome.OPEN


def _firm(line: Line) -> bool:
    return line.sureness is Sureness.FIRM


def incomplete(besides: Sequence[Beside]) -> int:
    """Count the base's cells that were not compared: not there, refused, copied or not comparable.

    Cells without any number, such as those that make data, have nothing to be compared by.
    """
    amount = 0
    for beside in besides:
        pairing = beside.pairing
        lost = [one.group for one in pairing.only_base]
        lost += [one.pair.base for one in pairing.refused] + [one.base for one in pairing.copied]
        amount += sum(any(record.metrics for record in group.ok) for group in lost)
        told: dict[Cell, bool] = {}
        for line in beside.lines:
            known = told.get(line.cell, False)
            told[line.cell] = known or line.outcome is not Outcome.NOT_COMPARABLE
        amount += sum(not compared for compared in told.values())
    return amount
