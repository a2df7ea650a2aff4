"""A badge: one line on two grounds, as an SVG that stands anywhere and asks for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import escape

from transect.analysis.set_lines import Beside, Outcome
from transect.report.comparison.words import doubts
from transect.report.engine.text import clipped
from transect.report.junit import xml_text
from transect.stats.comparisons import Confidence

# White on each has a contrast of 4.5 or more.
_GROUNDS = {
    Outcome.WORSE: "#b3261e",
    Outcome.BETTER: "#0a6b4b",
    Outcome.SAME: "#0a6b4b",
    Outcome.OPEN: "#5c6670",
    Outcome.NOT_COMPARABLE: "#5c6670",
}
_HEIGHT, _PAD, _SIZE = 20, 7, 11
_MAX_LENGTH = 80


def badge_text(besides: Sequence[Beside], outcome: Outcome, margin: float) -> str:
    """Say what a comparison came to in a few words."""
    lines = [line for beside in besides for line in beside.lines]
    amount = sum(
        line.outcome is outcome and (line.confidence is Confidence.CONFIRMED or outcome is Outcome.OPEN)
        for line in lines
    )
    if outcome is Outcome.WORSE:
        return f"{amount or 'provisionally'} worse"
    loose = sum(line.outcome is Outcome.OPEN for line in lines)
    remarks = doubts(lines, besides) + (f", {loose} open" if loose else "")
    if outcome is Outcome.BETTER:
        return f"{amount} better{remarks or ', none worse'}"
    if outcome is Outcome.SAME:
        return f"{amount} same within {100 * margin:g} %{remarks}"
    return outcome.value + doubts(lines, besides)


def badge(text: str, outcome: Outcome) -> str:
    """Draw a badge as SVG text; what of `text` could be markup is escaped."""
    left, right = "transect", xml_text(clipped(text, _MAX_LENGTH))
    widths = [_width(part) + 2 * _PAD for part in (left, right)]
    total = sum(widths)
    name = escape(f"{left}: {right}")
    parts = [
        f'<text x="{widths[0] / 2:g}" y="14">{escape(left)}</text>',
        f'<text x="{widths[0] + widths[1] / 2:g}" y="14">{escape(right)}</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{_HEIGHT}" role="img" aria-label="{name}">'
        f"<title>{name}</title>"
        f'<rect width="{total}" height="{_HEIGHT}" rx="3" fill="#3a4149"/>'
        f'<path d="M{widths[0]} 0h{widths[1] - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-{widths[1] - 3}z" '
        f'fill="{_GROUNDS[outcome]}"/>'
        f'<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="{_SIZE}">'
        f"{''.join(parts)}</g></svg>\n"
    )


def _width(text: str) -> int:
    """Return about how many pixels a text takes, rather too many than too few."""
    narrow = sum(character in "iljt.,:;|!' " for character in text)
    wide = sum(ord(character) > 0x2E7F for character in text)
    return round(0.64 * _SIZE * (len(text) - narrow - wide) + 0.4 * _SIZE * narrow + _SIZE * wide)
