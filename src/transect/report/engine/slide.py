"""What stands on the one page for a slide: up to three answers with what they rest on, the machine, and the caveat."""

from __future__ import annotations

from collections.abc import Sequence

from transect.report.engine.answers import Answer
from transect.report.engine.blocks import sureness
from transect.report.engine.charts.slide import Column, draw
from transect.report.engine.context import Context
from transect.report.engine.decisions import Decided, DecisionTable
from transect.report.engine.text import clean, count
from transect.stats.comparisons import Confidence

_MAX_COLUMNS, _MAX_SAID = 3, 4


def slide_of(context: Context, answers: Sequence[Answer], table: DecisionTable, source: str) -> str:
    """Draw the page as SVG; empty where no question has an answer."""
    answered = [answer for answer in answers if answer.clauses][:_MAX_COLUMNS]
    if not answered:
        return ""
    decided = {id(made.finding): made for row in table.rows for entry in row.entries for made in entry.decided}
    columns = [_column(answer, decided) for answer in answered]
    return draw(clean(context.title), columns, source=source, caveat=_caveat(context, answered))


def _column(answer: Answer, decided: dict[int, Decided]) -> Column:
    # What is sure is said first: a slide has no room for all.
    order = list(Confidence)
    clauses = sorted(answer.clauses, key=lambda clause: order.index(clause.finding.confidence))
    said = [
        (clean(f"{c.about}: {c.text}" if c.about else c.text), sureness(c.finding.confidence))
        for c in clauses[:_MAX_SAID]
    ]
    drawn = next((made for clause in clauses if (made := decided.get(id(clause.finding))) and made.bars), None)
    return Column(
        question=answer.question,
        said=said,
        bars=[(bar.name, bar.share, bar.value) for bar in drawn.bars] if drawn else (),
        about=clean(f"{drawn.finding.subject} {drawn.decision.scope}".strip()) if drawn else "",
    )


def _caveat(context: Context, answers: Sequence[Answer]) -> str:
    """Say for what this holds, and what took part in it that should not have."""
    watched = [record for record in context.records if "disturbed" in record.details]
    loud = sum(bool(record.details["disturbed"]) for record in watched)
    parts = ["Holds for this machine, these versions and these workloads."]
    if loud:
        parts.append(f"Other programs ran during {loud} of {count(len(watched), 'run')}.")
    pending = len(context.loaded.running) + len(context.loaded.waiting)
    if pending:
        parts.append(f"{count(pending, 'run')} still to come.")
    if any(clause.finding.confidence is not Confidence.CONFIRMED for answer in answers for clause in answer.clauses):
        parts.append("Likely: seen, but in too few or unequal runs to be sure.")
    return " ".join(parts)
