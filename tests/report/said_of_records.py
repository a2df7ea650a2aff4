"""What a report says of records, findings and sections one by one."""

from __future__ import annotations

from transect.analysis.load import Loaded
from transect.report.blocks import Chart, Charts, Chip, Heading, Table
from transect.report.context import Context
from transect.report.findings.finding import Finding
from transect.report.making import all_parts, make_findings, make_section

__all__ = ["Made", "context", "findings", "only", "rows"]


def context(*records, published=()) -> Context:
    return Context(Loaded(study="s", records=list(records)), title="t", published=published)


def findings(*records) -> dict[str, list[Finding]]:
    made = context(*records)
    found: dict[str, list[Finding]] = {}
    for one in make_findings(made, all_parts().findings):
        found.setdefault(one.kind, []).append(one)
    assert not made.problems, made.problems
    return found


def only(kind: str, *records) -> Finding:
    [found] = findings(*records)[kind]
    return found


class Made:
    """One section that records make."""

    def __init__(self, key: str, *records, **given) -> None:
        made = context(*records, **given)
        [section] = [one for one in all_parts().sections if one.key == key]
        body = make_section(section, made)
        assert body is not None and not made.problems, made.problems
        self.lead = body.body.lead
        self.charts = [c for b in body.body.blocks if isinstance(b, Charts) for c in b.items]
        self.headings = [b for b in body.body.blocks if isinstance(b, Heading)]
        self.tables = [b for b in body.body.blocks if isinstance(b, Table)]

    def chart(self, title: str) -> Chart:
        [found] = [one for one in self.charts if one.title.startswith(title)]
        return found

    def table(self, title: str) -> list[dict[str, str]]:
        [found] = [one for one in self.tables if (one.caption or one.folded).startswith(title)]
        return rows(found)


def rows(table: Table) -> list[dict[str, str]]:
    heads = [column.title for column in table.columns]
    plain = [[v.text if isinstance(v, Chip) else str(v) for v in row] for row in table.rows]
    return [dict(zip(heads, row, strict=True)) for row in plain]
