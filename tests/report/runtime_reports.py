"""What a report makes of records of runtimes: its findings, and its section."""

from __future__ import annotations

from transect.analysis.load import Loaded
from transect.domain.record import Record
from transect.report.blocks import Chart, Charts, Chip, Table
from transect.report.context import Context
from transect.report.findings.finding import Finding
from transect.report.making import all_parts, make_findings, make_section

__all__ = ["Made", "findings", "only", "rows"]


def findings(*records: Record) -> dict[str, list[Finding]]:
    """Return the findings by kind."""
    context = Context(Loaded(study="s", records=list(records)), title="t")
    found: dict[str, list[Finding]] = {}
    for one in make_findings(context, all_parts().findings):
        found.setdefault(one.kind, []).append(one)
    assert not context.problems
    return found


def only(kind: str, *records: Record) -> Finding:
    [found] = findings(*records)[kind]
    return found


class Made:
    """The section that records make."""

    def __init__(self, *records: Record) -> None:
        self.context = Context(Loaded(study="s", records=list(records)), title="t")
        [section] = [one for one in all_parts().sections if one.key == "runtimes"]
        made = make_section(section, self.context)
        assert made is not None and not self.context.problems, self.context.problems
        self.blocks = made.body.blocks
        self.charts = [
            chart for block in self.blocks if isinstance(block, Charts) for chart in block.items
        ]
        self.tables = [block for block in self.blocks if isinstance(block, Table)]

    @property
    def text(self) -> str:
        """All that is said outside of charts and tables."""
        texts = (getattr(block, "text", "") for block in self.blocks)
        return "\n".join(text for text in texts if isinstance(text, str))

    def table(self, title: str) -> list[dict[str, str]]:
        """Return the rows of the table whose caption or title begins so, by their heads."""
        [found] = [one for one in self.tables if (one.caption or one.folded).startswith(title)]
        return rows(found)

    def chart(self, title: str) -> Chart:
        """Return the chart whose title begins so."""
        [found] = [one for one in self.charts if one.title.startswith(title)]
        return found


def rows(table: Table) -> list[dict[str, str]]:
    heads = [column.title for column in table.columns]
    plain = [[v.text if isinstance(v, Chip) else str(v) for v in row] for row in table.rows]
    return [dict(zip(heads, row, strict=True)) for row in plain]
