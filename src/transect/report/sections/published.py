"""Section: what was published beside what was measured here."""

from __future__ import annotations

from transect.report.blocks import Block, Body, Prose, digits, table, words
from transect.report.context import Context
from transect.report.text import clean, number

__all__ = ["published_body"]


def published_body(context: Context) -> Body:
    """Set published numbers beside measured ones, or explain why there are none."""
    blocks: list[Block] = []
    if context.published:
        columns = [
            words("Study", lambda figure: _text(figure.get("study"))),
            words("What", lambda figure: _text(figure.get("what"))),
            digits("Published", lambda figure: _text(figure.get("published"))),
            digits("Measured here", lambda figure: _text(figure.get("measured"))),
            digits("Measured / published",
                   lambda figure: _ratio(figure.get("published"), figure.get("measured"))),
            words("Note", lambda figure: _text(figure.get("note"))),
        ]  # fmt: skip
        blocks.append(table(context.published, columns))
    else:
        blocks.append(
            Prose(
                "This study names no published numbers. A study file lists them with their source; "
                "they then stand here beside what this machine measured.",
                quiet=True,
            )
        )
    lead = "Another machine gives other numbers: compare shapes and ratios, not absolute speed."
    return Body(lead=lead, blocks=blocks)


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
