"""What a comparison of result sets says: a line for each metric of a cell, and what all moved by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from transect.analysis.result_sets import Pairing, ResultSet
from transect.analysis.set_metrics import Role
from transect.analysis.surroundings import Difference
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.stats.comparisons import Comparison, Confidence
from transect.stats.verdicts import Decision


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
        comparison = self.comparison
        if comparison is None:
            return None
        if comparison.ratio is not None:
            return comparison.ratio.value
        return comparison.a.median / comparison.b.median if comparison.b.median > 0 else None


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
