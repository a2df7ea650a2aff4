"""Section: what was published beside what was measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from transect.report.blocks import Lead, Part, digits, table, words
from transect.report.context import Context
from transect.report.text import clean

__all__ = ["published_body"]


def published_body(context: Context) -> Iterator[Part]:
    """Set published numbers beside measured ones, or explain why there are none."""
    yield Lead(
        "Another machine gives other numbers: compare shapes and ratios, not absolute speed.",
        empty="This study names no published numbers. A study file lists them with their source; "
        "they then stand here beside what this machine measured.",
    )
    columns = [
        words("Study", lambda figure: _said(figure, "study")),
        words("What", lambda figure: _said(figure, "what")),
        digits("Published", lambda figure: _said(figure, "published")),
        digits("Measured here", lambda figure: _said(figure, "measured")),
        digits("Measured / published", _ratio),
        words("Note", lambda figure: _said(figure, "note")),
    ]
    yield table(context.published, columns) if context.published else None


def _number(figure: Mapping[str, Any], key: str) -> float | None:
    value = figure.get(key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None


def _said(figure: Mapping[str, Any], key: str) -> float | str:
    value = _number(figure, key)
    return clean(str(figure.get(key) or "–")) if value is None else value


def _ratio(figure: Mapping[str, Any]) -> float | None:
    published, measured = _number(figure, "published"), _number(figure, "measured")
    return measured / published if published and measured is not None else None
