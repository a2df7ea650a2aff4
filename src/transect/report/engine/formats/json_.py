"""The report as JSON, for programs: the same sections, tables and findings as on the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from transect.report.engine.blocks import Chart, Charts, Chip, Explained, Facts, Failure, Heading, Prose, Table, Value
from transect.report.engine.formats import REPORT_FORMATS, Contents, ReportFormat
from transect.report.engine.formats._walk import charts
from transect.report.engine.report import Made

# Goes up when a reader of an older one would stumble.
VERSION = 2


@REPORT_FORMATS.register("json")
class Json(ReportFormat):
    """Sections, tables and findings as one JSON file; charts by their numbers and files."""

    place = "report.json"
    needs: Sequence[str] = ("figures",)

    def contents(self, made: Made) -> Contents:
        """Write everything but the drawings, which stand in `figures/`."""
        figures = {id(chart): name for name, chart in charts(made)}
        left_out: list[str] = []
        content = {
            "format": "transect report",
            "version": VERSION,
            "study": made.context.study,
            "title": made.context.title,
            "questions": [answer.question for answer in made.front.answers],
            "summary": made.summary,
            "sections": [
                {
                    "key": section.key,
                    "title": section.title,
                    "lead": section.body.lead,
                    "blocks": [
                        _block(block, figures, f"section {section.key}", left_out) for block in section.body.blocks
                    ],
                }
                for section in made.every
            ],
        }
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        # Half of a character cannot be written; it may come from a log.
        return Contents(files={"": text.encode("utf-8", "replace")}, left_out=left_out)


def _value(value: Value) -> Any:
    """Text stays text; a chip is an object of its text, tone and what more it says."""
    if isinstance(value, Chip):
        return {"text": value.text, "tone": value.tone, **({"title": value.title} if value.title else {})}
    return value


def _table(table: Table) -> dict[str, Any]:
    return {
        "kind": "table",
        "caption": table.caption,
        "folded": table.folded,
        "note": table.note,
        "columns": [{"title": column.title, "numeric": column.numeric} for column in table.columns],
        "rows": [[_value(value) for value in row] for row in table.rows],
    }


def _chart(chart: Chart, name: str) -> dict[str, Any]:
    return {
        "title": chart.title,
        "files": [f"figures/{name}.svg", f"figures/{name}.pdf"],
        "legend": [item.text for item in chart.legend],
        "note": chart.note,
        "numbers": _table(chart.table),
    }


def _block(block: Any, figures: dict[int, str], where: str, left_out: list[str]) -> dict[str, Any]:
    match block:
        case Charts():
            return {"kind": "charts", "items": [_chart(chart, figures[id(chart)]) for chart in block.items]}
        case Table():
            return _table(block)
        case Prose() | Explained() | Heading():
            return {"kind": block.kind, "text": block.text}
        case Facts():
            return {"kind": "facts", "items": [[term, _value(value)] for term, value in block.items]}
        case Failure():
            return {
                "kind": "failure",
                "status": block.status.text,
                "cause": block.cause,
                "amount": block.amount,
                "meaning": block.meaning,
                "action": block.action,
                "command": block.command,
                "said": _table(block.messages),
                "logs": [{"cell": cell, "end": log} for cell, log in block.logs],
            }
    left_out.append(f"{where}: a part of kind {type(block).__name__}")
    return {"kind": "unknown", "type": type(block).__name__}
