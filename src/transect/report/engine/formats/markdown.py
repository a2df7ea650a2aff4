"""The report as Markdown, as GitHub and Pandoc read it: for a repository, a wiki, a paper's supplement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from transect.report.engine.blocks import (
    Chart,
    Charts,
    Chip,
    Explained,
    Facts,
    Failure,
    Heading,
    Prose,
    Table,
    Value,
    sureness,
)
from transect.report.engine.finding import Finding
from transect.report.engine.formats import REPORT_FORMATS, Contents, ReportFormat
from transect.report.engine.formats._front import answers, decisions
from transect.report.engine.formats._markdown_text import fenced, inline, row
from transect.report.engine.formats._walk import charts
from transect.report.engine.report import Made


@REPORT_FORMATS.register("markdown")
class Markdown(ReportFormat):
    """One Markdown file with the tables of the page; its charts are those in `figures/`."""

    place = "report.md"
    needs: Sequence[str] = ("figures",)

    def contents(self, made: Made) -> Contents:
        """Write every section; a part of a kind that is not known here is named."""
        left_out: list[str] = []
        text = "\n\n".join(_report(made, left_out)) + "\n"
        return Contents(files={"": text.encode("utf-8", "replace")}, left_out=left_out)


def _report(made: Made, left_out: list[str]) -> Iterator[str]:
    yield f"# {inline(made.context.title)}"
    yield "\n".join(f"- {line.word}: {inline(line.text)}" for line in made.front.banner)
    for title, front in (("Answers", answers(made)), ("Decisions", decisions(made))):
        if front.rows:
            yield f"## {title}"
            yield from _table(replace(front, caption=""))
    yield "## Findings"
    yield _listed([item.finding for item in made.front.first])
    for heading, shown in made.front.more:
        yield f"### {inline(heading)}"
        yield _listed([item.finding for item in shown])
    figures = {id(chart): name for name, chart in charts(made)}
    for section in made.every:
        yield f"## {inline(section.title)}"
        if section.body.lead:
            yield inline(section.body.lead)
        for block in section.body.blocks:
            yield from _block(block, figures, f"section {section.key}", left_out)


def _listed(findings: Sequence[Finding]) -> str:
    return "\n".join(
        f"- {inline(f.text)} **{inline(sureness(f.confidence).text)}**  \n  {inline(f.evidence)}" for f in findings
    )


def _block(block: Any, figures: dict[int, str], where: str, left_out: list[str]) -> Iterator[str]:
    match block:
        case Prose():
            yield inline(block.text)
        case Explained():
            yield from map(inline, block.text.split("\n\n"))
        case Heading():
            yield f"### {inline(block.text)}"
        case Facts():
            yield "\n".join(f"- {inline(term)}: {_value(value)}" for term, value in block.items)
        case Table():
            yield from _table(block)
        case Charts():
            for chart in block.items:
                yield from _chart(chart, figures[id(chart)])
        case Failure():
            yield f"#### {inline(block.status.text)}, {inline(block.cause)}: {inline(block.amount)}"
            yield inline(block.meaning)
            yield f"**Now:** {inline(block.action)}"
            yield fenced(block.command)
            yield from _table(block.messages)
            for cell, log in block.logs:
                yield f"End of the log of {inline(cell)}:"
                yield fenced(log)
        case _:
            left_out.append(f"{where}: a part of kind {type(block).__name__}")


def _value(value: Value) -> str:
    if value is None:
        return ""
    return inline(value.text if isinstance(value, Chip) else value)


def _table(table: Table) -> Iterator[str]:
    if table.caption or table.folded:
        yield f"**{inline(table.caption or table.folded)}**"
    if table.columns:
        lines = [
            row([inline(column.title) for column in table.columns]),
            row(["---:" if column.numeric else "---" for column in table.columns]),
            *(row([_value(value) for value in values]) for values in table.rows),
        ]
        yield "\n".join(lines)
    if table.note:
        yield inline(table.note)


def _chart(chart: Chart, name: str) -> Iterator[str]:
    yield f"![{inline(chart.title)}](figures/{name}.svg)"
    if chart.note:
        yield inline(chart.note)
    yield from _table(chart.table)
