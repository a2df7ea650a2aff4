"""The decision table: workloads by questions, each entry what one finding decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transect.report.context import Context
from transect.report.findings.decision import Decision
from transect.report.findings.finding import Finding
from transect.report.parts import DecisionColumn
from transect.report.text import clean, count

__all__ = ["DecisionTable", "Entry", "Row", "decision_table"]

# Rows before the rest folds.
_MOST_ROWS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What a column says of a workload: decisions with their findings, the main one first.

    Without any, `empty` says why.
    """

    column: DecisionColumn
    told: tuple[tuple[Decision, Finding], ...] = ()
    empty: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A workload and its entries, one for each column of the table."""

    subject: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionTable:
    """The columns of which at least one workload has an entry, and the rows; `absent` names the others."""

    columns: tuple[DecisionColumn, ...]
    rows: tuple[Row, ...]
    absent: tuple[str, ...]

    @property
    def first(self) -> tuple[Row, ...]:
        """The rows that are open."""
        return self.rows[:_MOST_ROWS]

    @property
    def more(self) -> tuple[Row, ...]:
        """The rows that are folded."""
        return self.rows[_MOST_ROWS:]


def decision_table(
    context: Context, columns: Sequence[DecisionColumn], findings: Sequence[Finding]
) -> DecisionTable:
    """Put what findings decide into rows; in the order in which they come."""
    told: dict[tuple[str, str], list[tuple[Decision, Finding]]] = {}
    subjects: dict[str, None] = {}
    for finding in findings:
        decision = finding.decision
        if decision is not None:
            subject = clean(decision.row or finding.subject)
            subjects.setdefault(subject)
            told.setdefault((subject, decision.column), []).append((decision, finding))
    used = {key for _, key in told}
    shown = tuple(column for column in columns if column.key in used)
    rows = tuple(
        Row(
            subject=subject,
            entries=tuple(
                Entry(column=column, told=tuple(told[subject, column.key]))
                if (subject, column.key) in told
                else Entry(column=column, empty=_empty(context, subject, column))
                for column in shown
            ),
        )
        for subject in subjects
    )
    absent = tuple(one.title for one in columns if one.always and one.key not in used)
    return DecisionTable(columns=shown, rows=rows, absent=absent)


def _empty(context: Context, subject: str, column: DecisionColumn) -> str:
    groups = context.of(column.stage, subject)
    if not groups:
        return "not part of this study"
    usable = sum(bool(group.ok) for group in groups)
    if not usable:
        return f"none of {count(len(groups), 'cell')} ended well"
    return "nothing to compare: no two cells differ in this alone"
