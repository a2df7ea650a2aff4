"""What stands before the sections as plain tables: answers, decisions, findings."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from transect.report.engine.answers import Answer
from transect.report.engine.blocks import Column, Table, sureness, table, words
from transect.report.engine.decisions import Decided, Entry
from transect.report.engine.finding import Finding

if TYPE_CHECKING:
    from transect.report.engine.report import Made

# A workload, what is asked of it, and one answer; None where there is none.
_Entry = tuple[str, Entry, Decided | None]
# A file has room for all.
_ALL = 10**9


def answers(made: Made) -> Table:
    """Every question of the study with its answer and its confidence."""
    columns: list[Column[Answer]] = [
        words("Question", lambda answer: answer.question),
        words("Answer", lambda answer: answer.text),
        words("Confidence", lambda answer: sureness(answer.confidence).text if answer.clauses else ""),
    ]
    return table(made.front.answers, columns, caption="Answers", most=_ALL)


def decisions(made: Made, of: Collection[int] | None = None) -> Table:
    """The decision table, a row for each workload, question and condition; `of`: by findings with these ids alone."""
    columns: list[Column[_Entry]] = [
        words("Workload", lambda entry: entry[0]),
        words("Question", lambda entry: entry[1].column.title),
        words("Where", lambda entry: entry[2].decision.scope if entry[2] else ""),
        words("Decided", lambda entry: entry[2].decision.brief if entry[2] else entry[1].empty),
        words("Compared", lambda entry: _bars(entry[2]) if entry[2] else ""),
        words("Confidence", lambda entry: sureness(entry[2].finding.confidence).text if entry[2] else ""),
    ]
    entries = [
        (r.subject, entry, one)
        for r in made.front.table.rows
        for entry in r.entries
        for one in entry.decided or (None,)
        if of is None or (one is not None and id(one.finding) in of)
    ]
    return table(entries, columns, caption="Decisions", most=_ALL)


def _bars(decided: Decided) -> str:
    named = [f"{bar.name} {bar.value}" for bar in decided.bars]
    more = [f"{decided.more} more"] if decided.more else []
    left_out = [f"not {cells.what}: {cells.why}" for cells in decided.decision.left_out]
    return "; ".join([*named, *more, *left_out])


def findings(made: Made) -> Table:
    """Every finding in the order of the page."""
    columns: list[Column[Finding]] = [
        words("Finding", lambda finding: finding.text),
        words("Confidence", lambda finding: sureness(finding.confidence).text),
        words("Evidence", lambda finding: finding.evidence),
    ]
    first, more = made.front.first, made.front.more
    every = [shown.finding for shown in (*first, *(shown for _, members in more for shown in members))]
    return table(every, columns, caption="Findings", most=_ALL)
