"""What a comparison of result sets says: a line for each metric of a cell, what all moved by, and one word for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from transect.analysis.log_runs import READS
from transect.analysis.result_sets import PENDING, Pairing, ResultSet
from transect.analysis.set_metrics import Role
from transect.analysis.surroundings import Difference
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.stats.comparisons import Comparison, Confidence
from transect.stats.verdicts import Answer, Decision


class Outcome(StrEnum):
    """What a cell of another set is beside the base's."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    OPEN = "open"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One metric of one cell in two sets; `outcome` is seen from the other one.

    `comparison` has the other set's values as its first side. `what` is empty but for one of several
    numbers of a name. A line on how the cells ended has no metric and no comparison.
    """

    cell: Cell
    role: Role
    outcome: Outcome
    confidence: Confidence
    reason: str
    metric: str = ""
    what: str = ""
    unit: str = ""
    direction: Direction = Direction.NEUTRAL
    comparison: Comparison | None = None
    # A number that has no noise.
    fact: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times the base's value the other one is; None where that is no number."""
        return self.comparison.times if self.comparison is not None else None

    @property
    def decision(self) -> Decision | None:
        """What its verdict rests on, if it was put to a test."""
        return self.comparison.decision if self.comparison is not None else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """One metric over all cells of a stage: by how much they moved together."""

    stage: str
    metric: str
    cells: int
    direction: Direction
    decision: Decision

    @property
    def worse(self) -> bool:
        """Whether all of them together moved to the worse side."""
        return (self.decision.ratio > 1) == (self.direction is Direction.LOWER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """Another set beside the base: what pairs, what came of it, and where the two were measured."""

    other: ResultSet
    pairing: Pairing
    lines: Sequence[Line]
    shifts: Sequence[Shift]
    differences: Sequence[Difference]


def outcome_of(besides: Sequence[Beside], *, provisional: bool = False) -> Outcome:
    """Return the one word for all sets: worse as soon as a line is, the same where nothing else of what was measured is confirmed.

    Not comparable without any line that compares, open where none of them is confirmed. `provisional`: what is
    worse counts without being confirmed, in one cell or in a stage as a whole.
    """
    lines = [line for beside in besides for line in beside.lines]
    if any(counts_as_worse(line, provisional=provisional) for line in lines):
        return Outcome.WORSE
    if provisional and wholly_worse(besides):
        return Outcome.WORSE
    compared = [line for line in lines if line.outcome is not Outcome.NOT_COMPARABLE]
    if not compared:
        return Outcome.NOT_COMPARABLE
    if any(line.outcome is Outcome.BETTER and is_confirmed(line) for line in compared):
        return Outcome.BETTER
    # That a file has the size that it had says nothing of what was measured.
    measured = [line for line in compared if not line.fact] or compared
    return Outcome.SAME if any(map(is_confirmed, measured)) else Outcome.OPEN


def wholly_worse(besides: Sequence[Beside]) -> int:
    """Count the stages of all sets whose cells became worse together in a metric."""
    return len(
        {
            (place, shift.stage)
            for place, beside in enumerate(besides)
            for shift in beside.shifts
            if shifted_worse(shift)
        }
    )


def counts_as_worse(line: Line, *, provisional: bool) -> bool:
    """Whether a line makes all of a comparison worse."""
    return line.outcome is Outcome.WORSE and (provisional or is_confirmed(line))


def shifted_worse(shift: Shift) -> bool:
    """Whether all cells of a stage became worse together."""
    return shift.worse and shift.decision.answer is Answer.DIFFERENT


def is_confirmed(line: Line) -> bool:
    """Whether a verdict is sure."""
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
