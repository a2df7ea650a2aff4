"""Section: what was published beside what was measured here."""

from __future__ import annotations

from transect.report.blocks import Block, Column, Prose, Section, Table
from transect.report.context import Context
from transect.report.text import clean, number

__all__ = ["published_section"]


def published_section(context: Context) -> Section:
    """Set published numbers beside measured ones, or explain why there are none."""
    blocks: list[Block] = []
    if context.published:
        columns = [
            Column("Study"), Column("What"), Column("Published", numeric=True),
            Column("Measured here", numeric=True), Column("Measured / published", numeric=True),
            Column("Note"),
        ]  # fmt: skip
        rows = [
            [
                _text(one.get("study")), _text(one.get("what")), _text(one.get("published")),
                _text(one.get("measured")), _ratio(one.get("published"), one.get("measured")),
                _text(one.get("note")),
            ]
            for one in context.published
        ]  # fmt: skip
        blocks.append(Table(columns=columns, rows=rows))
    else:
        blocks.append(
            Prose(
                "This study names no published numbers. A study file lists them with their source; "
                "they then stand here beside what this machine measured.",
                quiet=True,
            )
        )
    lead = "Another machine gives other numbers: compare shapes and ratios, not absolute speed."
    return Section(id="published", title="Published and measured", lead=lead, blocks=blocks)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(float(value))
    return clean(str(value))


def _ratio(published: object, measured: object) -> str:
    both = (published, measured)
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in both) and published:
        return number(float(measured) / float(published))  # type: ignore[arg-type]
    return "–"
