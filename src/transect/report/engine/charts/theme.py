"""Colours and shapes of series.

The first colours are those of Okabe and Ito, "Color universal design", 2008; an olive stands for their
yellow, which on white paper is too pale and beside their orange too alike. Each is drawn with its
value for light paper and then replaced by a CSS variable, so that one SVG serves both themes.
A colour means one thing through a page: each name has its own, and parts of a whole have others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from transect.report.engine.blocks import LegendItem
from transect.report.engine.charts.inks import PARTS, SERIES, VARIABLES

# What a name has in every report, if no name before it took it: frameworks, then runtimes.
_USUAL = {
    "numpy": "ink",
    "torch": "vermillion",
    "tensorflow": "orange",
    "keras": "purple",
    "keras-tensorflow": "purple",
    "keras-torch": "green",
    "keras-jax": "sky",
    "keras-2": "olive",
    "mxnet": "blue",
    "go": "sky",
    "torch-eager": "vermillion",
    "python": "blue",
    "c": "brown",
    "cpp": "indigo",
    "rust": "orange",
    "javascript": "lime",
}
# One library under two names: a framework, and the runtime that its exports are held to.
_ALIKE = {"torch-eager": "torch"}
# Parts of a whole, such as a step: their hues are no name's.
_PARTS = {"compute": "slate", "communication": "tan", "input": "khaki", "other": "ash", "session": "heather"}

# Path of each of Vega's shapes on a square of side 2 around the origin.
_SHAPES = {
    "circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0",
    "square": "M-.9,-.9H.9V.9H-.9Z",
    "triangle-up": "M0,-1.1L1.1,.9H-1.1Z",
    "diamond": "M0,-1.2L1,0L0,1.2L-1,0Z",
    "cross": "M-.4,-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
    "triangle-down": "M0,1.1L1.1,-.9H-1.1Z",
    "triangle-right": "M1.1,0L-.9,1.1V-1.1Z",
    "triangle-left": "M-1.1,0L.9,1.1V-1.1Z",
}


@dataclass(frozen=True, slots=True)
class Style:
    """How one series looks: colour and, for those who do not see it, shape. What is drawn for comparison is dashed."""

    color: str
    shape: str = "circle"
    dash: tuple[int, ...] = ()


class Styles:
    """Gives every name its colour and every variant its shape, the same all through a report.

    A name that nobody announced takes the next colour that is free.
    """

    def __init__(self, names: Iterable[str], variants: Iterable[str]) -> None:
        self._colors: dict[str, str] = {}
        known = list(_USUAL)
        for name in sorted(set(names), key=lambda name: (known.index(name) if name in known else len(known), name)):
            self._color(name)
        # A single process comes first: it is the plain circle.
        ordered = sorted(set(variants), key=lambda name: (name != "single", name))
        self._variants = {name: i for i, name in enumerate(ordered)}

    def _color(self, name: str) -> str:
        name = _ALIKE.get(name, name)
        if name not in self._colors:
            free = [color for color in SERIES if color not in self._colors.values()] or list(SERIES)
            usual = _USUAL.get(name)
            # What names usually have is kept for them as long as others are left.
            spare = [color for color in free if color not in _USUAL.values()] or free
            self._colors[name] = usual if usual in free else spare[len(self._colors) % len(spare)]
        return self._colors[name]

    def get(self, name: str | None, variant: str | None = None) -> Style:
        """Return the style of a series, e.g. of a framework and a strategy, or of a part of a step."""
        shapes = list(_SHAPES)
        shape = shapes[self._variants.get(variant or "", 0) % len(shapes)]
        part = _PARTS.get(name or "")
        return Style(PARTS[part] if part else SERIES[self._color(name or "")], shape)


def colors() -> dict[str, str]:
    """Return the colours of the page's CSS variables on light paper, by the name of the variable."""
    return {variable[4:-1]: color for color, variable in VARIABLES.items()}


def legend(items: Iterable[tuple[str, Style]], *, line: bool = True, symbol: bool = True) -> list[LegendItem]:
    """Draw a legend item per series: a piece of its line, its symbol, or both."""
    drawn = []
    for text, style in items:
        dash = ",".join(str(part) for part in style.dash)
        color = VARIABLES.get(style.color, style.color)
        stroke = f'<line x1="0" x2="28" y1="7" y2="7" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"/>'
        path = f'<path transform="translate(14,7) scale(4.5)" d="{_SHAPES[style.shape]}" fill="{color}"/>'
        svg = (
            '<svg width="28" height="14" viewBox="0 0 28 14" aria-hidden="true">'
            f"{stroke if line else ''}{path if symbol else ''}</svg>"
        )
        drawn.append(LegendItem(svg=Markup(svg), text=text))  # noqa: S704 ours
    return drawn
