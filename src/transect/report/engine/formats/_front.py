"""What stands before the sections as plain tables: answers, decisions, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from transect.report.engine.answers import Answer
from transect.report.engine.blocks import Column, Table, sureness, table, words
from transect.report.engine.decision import Decision
from transect.report.engine.decisions import Row
from transect.report.engine.finding import Finding

if TYPE_CHECKING:
    from transect.report.engine.report import Made

# What is the case: workload, question, decision and finding; the last two are None where nothing was decided.
_Entry = tuple[str, str, Decision | None, Finding | None, str]


def answers(made: Made) -> Table:
    """Every question of the study with its answer and its confidence."""
    columns: list[Column[Answer]] = [
        words("Question", lambda answer: answer.question),
        words("Answer", lambda answer: answer.text),
        words("Confidence", lambda answer: sureness(answer.confidence).text if answer.clauses else ""),
    ]
    return table(made.front.answers, columns, caption="Answers", most=_ALL)


def decisions(made: Made) -> Table:
    """The decision table, a row for each workload, question and condition."""
    columns: list[Column[_Entry]] = [
        words("Workload", lambda entry: entry[0]),
        words("Question", lambda entry: entry[1]),
        words("Where", _of(lambda decision: decision.scope)),
        words("First", lambda entry: entry[2].brief if entry[2] else entry[4]),
        words("Reaches", _of(lambda decision: ", ".join(filter(None, (decision.value, decision.quality))))),
        words("Limited by", _of(lambda decision: decision.limit)),
        words("Second", _of(lambda decision: decision.second)),
        words("Not compared", _of(lambda decision: "; ".join(f"{o.what}: {o.why}" for o in decision.left_out))),
        words("Confidence", lambda entry: sureness(entry[3].confidence).text if entry[3] else ""),
    ]
    entries = [entry for row in made.front.table.rows for entry in _entries(row)]
    return table(entries, columns, caption="Decisions", most=_ALL)


def findings(made: Made) -> Table:
    """Every finding in the order of the page."""
    columns: list[Column[Finding]] = [
        words("Finding", lambda finding: finding.text),
        words("Confidence", lambda finding: sureness(finding.confidence).text),
        words("Evidence", lambda finding: finding.evidence),
    ]
    return table(list(in_order(made)), columns, caption="Findings", most=_ALL)


# A file has room for all.
_ALL = 10**9


def in_order(made: Made) -> Iterator[Finding]:
    """Yield the findings as the page has them: those that are wrong results first, the others under their headings."""
    for item in made.front.first:
        yield item.finding
    for _, shown in made.front.more:
        for item in shown:
            yield item.finding


def _of(value: Callable[[Decision], str]) -> Callable[[_Entry], str]:
    return lambda entry: value(entry[2]) if entry[2] is not None else ""


def _entries(row: Row) -> Iterator[_Entry]:
    for entry in row.entries:
        if not entry.decided:
            yield row.subject, entry.column.title, None, None, entry.empty
        for made in entry.decided:
            yield row.subject, entry.column.title, made.decision, made.finding, ""
