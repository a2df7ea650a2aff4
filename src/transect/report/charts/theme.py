"""Colours, shapes and dashes of series, and the SVG that carries them.

The colours are those of Okabe and Ito, "Color universal design", 2008; an olive stands for their
yellow, which on white paper is too pale and beside their orange too alike. Each is drawn with its
value for light paper and then replaced by a CSS variable, so that one SVG serves both themes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup, escape

from transect.report.blocks import LegendItem

__all__ = [
    "INK", "MUTED", "PAPER", "RULE", "WIDTH", "Style", "Styles", "colors", "legend", "palette", "render",
]  # fmt: skip

INK, MUTED, RULE, PAPER = "#1d2329", "#5c6670", "#dde2e7", "#ffffff"
WIDTH = 380
_SCHEMA = alt.SCHEMA_URL

_SERIES = {
    "blue": "#0072b2", "vermillion": "#d55e00", "green": "#009e73", "purple": "#b0588f",
    "orange": "#e69f00", "sky": "#56b4e9", "ink": "#3a4149", "olive": "#594700",
}  # fmt: skip
_VARIABLES = {value: f"var(--s-{name})" for name, value in _SERIES.items()} | {
    INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)", PAPER: "var(--paper)",
}  # fmt: skip

_USUAL = {
    "numpy": "ink", "torch": "vermillion", "tensorflow": "orange", "keras": "purple",
    "keras-tensorflow": "purple", "keras-torch": "green", "keras-jax": "sky", "keras-2": "olive",
    "mxnet": "blue", "go": "sky", "torch-eager": "vermillion", "python": "blue", "c": "ink",
    "cpp": "purple", "rust": "orange", "javascript": "olive",
    "compute": "blue", "communication": "vermillion", "input": "olive", "other": "ink",
}  # fmt: skip

# Path of each shape on a square of side 2 around the origin: Vega's own, then ours.
_SHAPES = {
    "circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0",
    "square": "M-.9,-.9H.9V.9H-.9Z",
    "triangle-up": "M0,-1.1L1.1,.9H-1.1Z",
    "diamond": "M0,-1.2L1,0L0,1.2L-1,0Z",
    "cross": "M-.4,-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
    "triangle-down": "M0,1.1L1.1,-.9H-1.1Z",
    "triangle-right": "M1.1,0L-.9,1.1V-1.1Z",
    "triangle-left": "M-1.1,0L.9,1.1V-1.1Z",
    "saltire": "M-1,-.5L-.5,-1L0,-.5L.5,-1L1,-.5L.5,0L1,.5L.5,1L0,.5L-.5,1L-1,.5L-.5,0Z",
    "bar": "M-1.2,-.5H1.2V.5H-1.2Z",
    "hourglass": "M-1,-1H1L.3,0L1,1H-1L-.3,0Z",
    "pillar": "M-.5,-1.2H.5V1.2H-.5Z",
}
_OURS = frozenset(list(_SHAPES)[8:])
# As many as make every pair of shape and dash occur once in 84 variants.
_DASHES = ((), (6, 3), (2, 2), (9, 3, 2, 3), (4, 2), (1, 3), (12, 4))


@dataclass(frozen=True, slots=True)
class Style:
    """How one series looks: colour and, for those who do not see it, shape and dash."""

    color: str
    shape: str = "circle"
    dash: tuple[int, ...] = ()

    @property
    def symbol(self) -> str:
        """The shape as Vega wants it: one of its names, or a path."""
        return _SHAPES[self.shape] if self.shape in _OURS else self.shape


class Styles:
    """Gives every name its colour and every variant its shape, the same all through a report."""

    def __init__(self, names: Iterable[str], variants: Iterable[str]) -> None:
        unknown = sorted(set(names) - set(_USUAL))
        spare = ["green", "olive", "purple", "sky", "blue", "orange"]
        extra = {name: spare[i % len(spare)] for i, name in enumerate(unknown)}
        self._colors = {**_USUAL, **extra}
        # A single process comes first: it is the plain circle and the unbroken line.
        ordered = sorted(set(variants), key=lambda name: (name != "single", name))
        self._variants = {name: i for i, name in enumerate(ordered)}

    def get(self, name: str | None, variant: str | None = None) -> Style:
        """Return the style of a series, e.g. of a framework and a strategy."""
        index = self._variants.get(variant or "", 0)
        shapes = list(_SHAPES)
        return Style(
            _SERIES[self._colors.get(name or "", "green")],
            shapes[index % len(shapes)],
            _DASHES[index % len(_DASHES)],
        )


def colors() -> dict[str, str]:
    """Return the colours of the page's CSS variables on light paper, by the name of the variable."""
    return {variable[4:-1]: color for color, variable in _VARIABLES.items()}


def palette(amount: int) -> list[Style]:
    """Return styles for series without a name of their own, in the order of a chart."""
    colors, shapes = list(_SERIES.values()), list(_SHAPES)
    return [
        Style(colors[i % len(colors)], shapes[i % len(shapes)], _DASHES[i % len(_DASHES)])
        for i in range(amount)
    ]


def legend(
    items: Iterable[tuple[str, Style]], *, line: bool = True, symbol: bool = True
) -> list[LegendItem]:
    """Draw a legend item per series: a piece of its line, its symbol, or both."""
    drawn = []
    for text, style in items:
        dash = ",".join(str(part) for part in style.dash)
        color = _VARIABLES.get(style.color, style.color)
        stroke = (
            f'<line x1="0" x2="28" y1="7" y2="7" stroke="{color}" stroke-width="2"'
            f' stroke-dasharray="{dash}"/>'
        )
        path = (
            f'<path transform="translate(14,7) scale(4.5)" d="{_SHAPES[style.shape]}"'
            f' fill="{color}"/>'
        )
        svg = (
            '<svg width="28" height="14" viewBox="0 0 28 14" aria-hidden="true">'
            f"{stroke if line else ''}{path if symbol else ''}</svg>"
        )
        drawn.append(LegendItem(svg=Markup(svg), text=text))  # noqa: S704 ours
    return drawn


def render(drawing: Mapping[str, Any], *, alt_text: str, name: str) -> Markup:
    """Draw a chart as an SVG that may stand in the page.

    `name` makes the ids inside the drawing unique. Text from records is escaped by Vega.
    Raises ValueError from vl-convert for a chart that cannot be drawn, and altair's
    SchemaValidationError for one that is not Vega-Lite.
    """
    _check(drawing)
    spec = {
        "$schema": _SCHEMA,
        **drawing,
        "config": _config(),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 6, "right": 6, "top": 2, "bottom": 2},
    }
    svg = vl_convert.vegalite_to_svg(spec)
    svg = re.sub(
        r'<rect width="[^"]*" height="[^"]*" fill="(white|transparent)"\s*/>', "", svg, count=1
    )
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    box = f"0 0 {size.group(1)} {size.group(2)}" if size else f"0 0 {WIDTH} 200"
    body = svg[svg.index(">") + 1 : svg.rindex("</svg>")]
    # Only tags are touched, never the text between them.
    body = re.sub(r"<[^>]*>", lambda match: _tag(match.group(), name), body)
    return Markup(  # noqa: S704 Vega escapes text, the label is escaped here
        f'<svg class="plot" viewBox="{box}" role="img" aria-label="{escape(alt_text)}">{body}</svg>'
    )


_checked: set[tuple[str, ...]] = set()


def _check(drawing: Mapping[str, Any]) -> None:
    """Hold each form of drawing to Vega-Lite's schema once: a misspelt key would draw nothing.

    Once, because a check takes as long as the drawing.
    """
    layers = drawing.get("layer", [drawing])
    form = tuple(str(layer.get("mark", {}).get("type")) for layer in layers)
    if form not in _checked:
        empty = [{**layer, "data": {"values": []}} for layer in layers]
        rest = {key: value for key, value in drawing.items() if key not in ("layer", "data")}
        alt.Chart.from_dict({**rest, "layer": empty} if "layer" in drawing else empty[0])
        _checked.add(form)


def _tag(tag: str, name: str) -> str:
    """Colour one tag by CSS, drop what the page sets itself, and make its ids unique."""
    tag = re.sub(
        r'(fill|stroke)="(#[0-9a-fA-F]{6})"',
        lambda m: f'{m.group(1)}="{_VARIABLES.get(m.group(2).lower(), m.group(2))}"',
        tag,
    )
    tag = re.sub(r' aria-label="@(\d+)"', r' data-mark="\1"', tag)
    tag = re.sub(r' (?:font-family|aria-[a-z]+|role|pointer-events)="[^"]*"', "", tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    tag = re.sub(r'(id="|url\(#)(clip|gradient)', rf"\1{name}-\2", tag)
    return "" if tag.startswith("<path") and ' d=""' in tag and tag.endswith("/>") else tag


def _config() -> dict[str, Any]:
    axis = {
        "labelColor": MUTED, "titleColor": MUTED, "gridColor": RULE, "domainColor": MUTED,
        "tickColor": MUTED, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
        "domain": False, "ticks": False, "labelPadding": 5, "titlePadding": 6,
        "labelOverlap": "greedy", "labelSeparation": 8,
    }  # fmt: skip
    return {
        "aria": False, "background": None, "view": {"stroke": None}, "axis": axis,
        "text": {"fontSize": 11, "color": INK},
    }  # fmt: skip
