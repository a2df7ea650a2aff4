"""The decision table: workloads by questions, each entry what one finding decides, as bars."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transect.analysis.groups import Group
from transect.analysis.labels import people_name
from transect.domain.metrics import Direction, metric
from transect.report.engine.context import Context
from transect.report.engine.decision import Decision, why_not
from transect.report.engine.finding import Finding, median
from transect.report.engine.parts import DecisionColumn
from transect.report.engine.text import clean, count, quantity

# Rows before the rest folds, and bars of one entry: the best, and as many rivals.
_MAX_ROWS, _MAX_BARS = 8, 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """What one of those that were compared reaches: `share` of the longest bar, `value` with its unit."""

    name: str
    share: float
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """A decision, the finding that says it, and bars for what was compared, best first; `more` are not drawn.

    `measure` is what bars show, and which is better.
    """

    decision: Decision
    finding: Finding
    bars: tuple[Bar, ...] = ()
    more: int = 0
    measure: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What a column says of a workload, the main thing first; without any, `empty` says why."""

    column: DecisionColumn
    decided: tuple[Decided, ...] = ()
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
    by_key = {column.key: column for column in columns}
    decided: dict[tuple[str, str], list[Decided]] = {}
    subjects: dict[str, None] = {}
    for finding in findings:
        decision = finding.decision
        if decision is not None:
            subject = clean(decision.row or finding.subject)
            subjects.setdefault(subject)
            bars, more = _bars(finding, by_key[decision.column]) if decision.column in by_key else ((), 0)
            measure = _measure(by_key[decision.column].metric) if bars else ""
            made = Decided(decision=decision, finding=finding, bars=bars, more=more, measure=measure)
            decided.setdefault((subject, decision.column), []).append(made)
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


def _bars(finding: Finding, column: DecisionColumn) -> tuple[tuple[Bar, ...], int]:
    """Return bars of what a finding compares, and how many are not drawn; none without two numbers.

    What the finding names first stands first: a median alone does not overturn what pairs decide.
    """
    compared = [side for pair in finding.contrasts for side in (pair.group, pair.base)]
    values = {group.cell: value for group, value in finding.numbers}
    for groups in (finding.groups, (*finding.groups, *compared)) if column.metric else ():
        if len(values) < 2:
            values = {group.cell: value for group in groups if (value := median(group, column.metric)) is not None}
    if len(values) < 2 or not all(0 < value < math.inf for value in values.values()):
        return (), 0
    kind = metric(column.metric)
    best = sorted(values, key=lambda cell: (values[cell], cell.id), reverse=kind.direction is Direction.HIGHER)
    named = [group.cell for group in finding.groups[:1] if group.cell in values]
    drawn = list(dict.fromkeys([*named, *best]))[:_MAX_BARS]
    most = max(values[cell] for cell in drawn)
    unit = "samples/s" if kind.unit == "1/s" else kind.unit
    bars = (
        Bar(name=clean(people_name(cell, values)), share=values[cell] / most, value=quantity(values[cell], unit))
        for cell in drawn
    )
    return tuple(bars), len(values) - len(drawn)


def _measure(name: str) -> str:
    kind = metric(name)
    better = "more" if kind.direction is Direction.HIGHER else "shorter" if kind.unit == "s" else "less"
    return f"{name.replace('_', ' ')}, {better} is better"


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
