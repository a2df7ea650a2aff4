"""What stands before the sections as plain tables: answers, decisions, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from transect.report.answers import Answer
from transect.report.blocks import Column, Table, table, words
from transect.report.decisions import Row
from transect.report.findings.decision import Decision
from transect.report.findings.finding import Finding

if TYPE_CHECKING:
    from transect.report.report import Made

# What is the case: workload, question, decision and finding; the last two are None where nothing was decided.
_Entry = tuple[str, str, Decision | None, Finding | None, str]


def answers(made: Made) -> Table:
    """Every question of the study with its answer and its confidence."""
    columns: list[Column[Answer]] = [
        words("Question", lambda one: one.question),
        words("Answer", lambda one: one.text),
        words("Confidence", lambda one: one.confidence),
    ]
    return table(made.front.answers, columns, caption="Answers", most=_ALL)


def decisions(made: Made) -> Table:
    """The decision table, a row for each workload, question and condition."""
    columns: list[Column[_Entry]] = [
        words("Workload", lambda one: one[0]),
        words("Question", lambda one: one[1]),
        words("Where", _of(lambda one: one.scope)),
        words("First", lambda one: one[2].brief if one[2] else one[4]),
        words("Reaches", _of(lambda one: ", ".join(filter(None, (one.value, one.quality))))),
        words("Limited by", _of(lambda one: one.limit)),
        words("Second", _of(lambda one: one.second)),
        words("Not compared", _of(lambda one: "; ".join(f"{o.what}: {o.why}" for o in one.left_out))),
        words("Confidence", lambda one: one[3].confidence.value if one[3] else ""),
    ]
    entries = [entry for row in made.front.table.rows for entry in _entries(row)]
    return table(entries, columns, caption="Decisions", most=_ALL)


def findings(made: Made) -> Table:
    """Every finding in the order of the page."""
    columns: list[Column[Finding]] = [
        words("Finding", lambda one: one.text),
        words("Confidence", lambda one: one.confidence.value),
        words("Evidence", lambda one: one.evidence),
    ]
    return table(list(in_order(made)), columns, caption="Findings", most=_ALL)


# A file has room for all.
_ALL = 10**9


def in_order(made: Made) -> Iterator[Finding]:
    """Yield the findings as the page has them: those that are open first, the others under their headings."""
    for one in made.front.first:
        yield one.finding
    for _, shown in made.front.more:
        for one in shown:
            yield one.finding


def _of(value: Callable[[Decision], str]) -> Callable[[_Entry], str]:
    return lambda one: value(one[2]) if one[2] is not None else ""


def _entries(row: Row) -> Iterator[_Entry]:
    for entry in row.entries:
        if not entry.told:
            yield row.subject, entry.column.title, None, None, entry.empty
        for decision, finding in entry.told:
            yield row.subject, entry.column.title, decision, finding, ""
