"""The decision table: workloads by questions, each entry what one finding decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transect.analysis.groups import Group
from transect.report.engine.context import Context
from transect.report.engine.decision import Decision, why_not
from transect.report.engine.finding import Finding
from transect.report.engine.parts import DecisionColumn
from transect.report.engine.text import clean, count

# Rows before the rest folds.
_MAX_ROWS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What a column says of a workload: decisions with their findings, the main one first.

    Without any, `empty` says why.
    """

    column: DecisionColumn
    decided: tuple[tuple[Decision, Finding], ...] = ()
    empty: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A workload and its entries, one for each column of the table."""

    subject: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionTable:
    """The columns that the study asks, and the rows; `absent` names those of the others that every study is told of."""

    columns: tuple[DecisionColumn, ...]
    rows: tuple[Row, ...]
    absent: tuple[str, ...]

    @property
    def first(self) -> tuple[Row, ...]:
        """The rows that are open."""
        return self.rows[:_MAX_ROWS]

    @property
    def more(self) -> tuple[Row, ...]:
        """The rows that are folded."""
        return self.rows[_MAX_ROWS:]


def decision_table(context: Context, columns: Sequence[DecisionColumn], findings: Sequence[Finding]) -> DecisionTable:
    """Put what findings decide into rows, in the order in which they come; then workloads without a decision.

    A workload that a study asks about is never missing: where nothing is decided its entry says why.
    """
    decided: dict[tuple[str, str], list[tuple[Decision, Finding]]] = {}
    subjects: dict[str, None] = {}
    for finding in findings:
        decision = finding.decision
        if decision is not None:
            subject = clean(decision.row or finding.subject)
            subjects.setdefault(subject)
            decided.setdefault((subject, decision.column), []).append((decision, finding))
    used = {key for _, key in decided}
    for column in columns:
        asked = [
            workload
            for workload in context.workloads(column.stage)
            if (column.always or column.key in used) and _asked(context, workload, column)
        ]
        if asked:
            used.add(column.key)
            subjects |= dict.fromkeys(clean(workload) for workload in asked)
    named = {clean(workload): workload for column in columns for workload in context.workloads(column.stage)}
    shown = tuple(column for column in columns if column.key in used)
    rows = tuple(
        Row(
            subject=subject,
            entries=tuple(
                Entry(column=column, decided=tuple(decided[subject, column.key]))
                if (subject, column.key) in decided
                else Entry(column=column, empty=_empty(context, named.get(subject, subject), column))
                for column in shown
            ),
        )
        for subject in subjects
    )
    absent = tuple(column.title for column in columns if column.always and column.key not in used)
    return DecisionTable(columns=shown, rows=rows, absent=absent)


def _empty(context: Context, subject: str, column: DecisionColumn) -> str:
    groups = _asked(context, subject, column)
    if not groups:
        return "not part of this study"
    usable = [group for group in groups if group.ok and not group.wrong]
    if not usable:
        causes = Counter(why_not(group) or "wrong result" for group in groups)
        counts = "; ".join(f"{amount} {why}" for why, amount in causes.most_common())
        return f"nothing usable of {count(len(groups), 'cell')}: {counts}"
    if all(group.over_subscribed for group in usable):
        return f"more ranks than cores in {count(len(usable), 'cell')}, so nothing is compared"
    return "nothing to compare: no two cells differ in this alone"


def _asked(context: Context, workload: str, column: DecisionColumn) -> list[Group]:
    """Return a workload's groups that a column is about."""
    return [group for group in context.of(column.stage, workload) if column.asks(group.cell)]
