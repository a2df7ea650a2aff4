"""Draws one chart as SVG.

It imports next to nothing of transect, so that a process of its own begins quickly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup, escape

from transect.report.engine.charts.inks import INK, MUTED, RULE, VARIABLES, WIDTH


def render(drawing: Mapping[str, Any], *, alt_text: str, name: str) -> Markup:
    """Draw a chart as an SVG that may stand in the page.

    `name` makes the ids inside the drawing unique. Text from records is escaped by Vega.
    Raises ValueError from vl-convert for a chart that cannot be drawn, and altair's
    SchemaValidationError for one that is not Vega-Lite.
    """
    _check(drawing)
    spec = {
        "$schema": alt.SCHEMA_URL,
        **drawing,
        "config": _config(),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 6, "right": 6, "top": 2, "bottom": 2},
    }
    svg = vl_convert.vegalite_to_svg(spec)
    svg = re.sub(r'<rect width="[^"]*" height="[^"]*" fill="(white|transparent)"\s*/>', "", svg, count=1)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    box = f"0 0 {size.group(1)} {size.group(2)}" if size else f"0 0 {WIDTH} 200"
    # Names may hold characters that no XML may.
    body = svg[svg.index(">") + 1 : svg.rindex("</svg>")].translate(_NOT_XML)
    # Only tags are touched, never the text between them.
    anchor = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)  # it may hold the name of anything
    body = re.sub(r"<[^>]*>", lambda match: _tag(match.group(), anchor), body)
    return Markup(  # noqa: S704 Vega escapes text, the label is escaped here
        f'<svg class="plot" viewBox="{box}" role="img" aria-label="{escape(alt_text)}">{body}</svg>'
    )


_NOT_XML = {at: 0x2400 + at for at in range(32) if chr(at) not in "\t\n\r"} | {0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
_checked: set[tuple[str, ...]] = set()


def _check(drawing: Mapping[str, Any]) -> None:
    """Hold each form of drawing to Vega-Lite's schema once: a misspelt key would draw nothing.

    Once, because a check takes as long as the drawing.
    """
    layers = drawing.get("layer", [drawing])
    form = tuple(str(layer.get("mark", {}).get("type")) for layer in layers)
    if form not in _checked:
        empty = [{**layer, "data": {"values": []}} for layer in layers]
        common = {key: value for key, value in drawing.items() if key not in ("layer", "data")}
        alt.Chart.from_dict({**common, "layer": empty} if "layer" in drawing else empty[0])
        _checked.add(form)


def _tag(tag: str, name: str) -> str:
    """Colour one tag by CSS, drop what the page sets itself, and make its ids unique."""
    tag = re.sub(
        r'(fill|stroke)="(#[0-9a-fA-F]{6})"',
        lambda m: f'{m.group(1)}="{VARIABLES.get(m.group(2).lower(), m.group(2))}"',
        tag,
    )
    tag = re.sub(r' aria-label="@(\d+)"', r' data-mark="\1"', tag)
    # The name at the end of a line goes with it, and is no row.
    tag = re.sub(r' aria-label="~(\d+)"', r' data-line="\1"', tag)
    tag = re.sub(r' (?:font-family|aria-[a-z]+|role|pointer-events)="[^"]*"', "", tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    tag = re.sub(r'(id="|url\(#)(clip|gradient)', rf"\1{name}-\2", tag)
    return "" if tag.startswith("<path") and ' d=""' in tag and tag.endswith("/>") else tag


def _config() -> dict[str, Any]:
    axis = {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "gridColor": RULE,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "domain": False,
        "ticks": False,
        "labelPadding": 5,
        "titlePadding": 6,
        "labelOverlap": "greedy",
        "labelSeparation": 8,
    }
    return {
        "aria": False,
        "background": None,
        "view": {"stroke": None},
        "axis": axis,
        "text": {"fontSize": 11, "color": INK},
    }
