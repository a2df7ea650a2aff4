"""One page that says what a study found: an SVG of 16 to 9, on white, that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import escape

from transect.report.engine.blocks import Chip
from transect.report.engine.charts.inks import GOOD, INK, MUTED, PAPER, RULE, WARN

WIDTH, HEIGHT = 1280, 720
FONTS = "Liberation Sans, Arial, Helvetica, sans-serif"
_EDGE, _GAP = 56, 44
_TONES = {"good": GOOD, "warn": WARN}
# Widths of letters in parts of their size, as Liberation Sans and Arial have them.
_NARROW, _WIDE = frozenset("iIjlt.,:;'|!()[]f "), frozenset("mwMW@%")
_BAR = "#c4cbd2"
# Lines of an answer, and bars below it.
_MAX_LINES, _MAX_BARS = 7, 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A question, its answers with their chips, and (name, share of the longest bar, value) of what was compared."""

    question: str
    said: Sequence[tuple[str, Chip]]
    bars: Sequence[tuple[str, float, str]] = ()
    about: str = ""


def draw(title: str, columns: Sequence[Column], *, source: str, caveat: str) -> str:
    """Return the page as SVG; `source`: whose numbers these are, `caveat`: what to know before repeating them."""
    page = _Page()
    y = page.words(_EDGE, 74, title, 28, WIDTH - 2 * _EDGE, weight=700, most=2)
    y = page.words(_EDGE, y + 30, source, 17, WIDTH - 2 * _EDGE, fill=MUTED, most=1)
    top = y + 28
    page.box(_EDGE, top, WIDTH - 2 * _EDGE, 1, RULE)
    amount = max(1, len(columns))
    wide = (WIDTH - 2 * _EDGE - (amount - 1) * _GAP) / amount
    for place, column in enumerate(columns):
        _column(page, column, _EDGE + place * (wide + _GAP), top + 34, wide)
    page.box(_EDGE, HEIGHT - 68, WIDTH - 2 * _EDGE, 1, RULE)
    page.words(_EDGE, HEIGHT - 38, caveat, 15, WIDTH - 2 * _EDGE, most=1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="{FONTS}"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{"".join(page.parts)}</svg>\n'
    )


def _column(page: _Page, column: Column, x: float, y: float, wide: float) -> None:
    y = page.words(x, y, column.question, 15, wide, fill=MUTED, most=3)
    # Bars stand at one height in all columns, and answers end above them.
    bars = list(column.bars[:_MAX_BARS])
    first_bar = HEIGHT - 104 - 38 * len(bars)
    last = (first_bar - 52 if bars else HEIGHT - 84) - 24
    y += 12
    for place, (text, chip) in enumerate(column.said):
        lines = wrapped(text, 17, wide)
        room = int((last - y) // 22)
        # What does not fit whole is not begun, but for the first.
        if room < len(lines) + 1 and place:
            page.words(x, y + 22, f"{len(column.said) - place} more in the report.", 14, wide, fill=MUTED, most=1)
            break
        y = page.words(x, y + 23, text, 17, wide, weight=600, most=max(1, min(_MAX_LINES, room - 1)))
        y = page.words(x, y + 19, chip.text, 14, wide, fill=_TONES.get(chip.tone, MUTED), weight=700, most=1) + 10
    if bars:
        page.words(x, first_bar - 30, column.about, 14, wide, fill=MUTED, most=1)
    for place, (name, share, value) in enumerate(bars):
        at = first_bar + 38 * place
        page.words(x, at, name, 14, wide - width(value, 14) - 16, most=1)
        page.words(x + wide - width(value, 14), at, value, 14, wide, weight=600, most=1)
        page.box(x, at + 7, max(2.0, wide * share), 9, INK if place == 0 else _BAR)


class _Page:
    """What is drawn, in order."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def words(
        self, x: float, y: float, text: str, size: float, room: float, *, most: int, fill: str = INK, weight: int = 400
    ) -> float:
        """Write a text in lines from a baseline on; return the baseline of the last."""
        lines = wrapped(text, size * (1.04 if weight > 500 else 0.97), room)
        if len(lines) > most:
            lines = [*lines[: most - 1], _cut(lines[most - 1], size, room)]
        for place, line in enumerate(lines):
            at = y + place * size * 1.3
            self.parts.append(
                f'<text x="{x:.1f}" y="{at:.1f}" font-size="{size:g}" font-weight="{weight}" fill="{fill}">'
                f"{escape(line)}</text>"
            )
        return y + max(0, len(lines) - 1) * size * 1.3

    def box(self, x: float, y: float, wide: float, high: int, fill: str) -> None:
        """Draw a bar, or a thin line."""
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high}" fill="{fill}"/>')


def width(text: str, size: float) -> float:
    """Return about how wide a text is."""
    return size * sum(0.3 if c in _NARROW else 0.86 if c in _WIDE else 0.68 if c.isupper() else 0.56 for c in text)


def wrapped(text: str, size: float, room: float) -> list[str]:
    """Cut a text into lines that fit, between words."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(word if width(word, size) <= room else _cut(word, size, room))
    return lines


def _cut(line: str, size: float, room: float) -> str:
    """Shorten a line until it fits with a sign that something is left out: by words, so that no number is cut."""
    words = line.split()
    while len(words) > 1 and width(f"{' '.join(words)} …", size) > room:
        words.pop()
    text = " ".join(words)
    while text and width(f"{text} …", size) > room:
        text = text[:-1]
    return f"{text} …"
