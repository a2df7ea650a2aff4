"""What all drawings are made of: layers of marks, scales and axes of Vega-Lite as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from transect.report.engine.blocks import Mark
from transect.report.engine.charts.inks import INK, MUTED, RULE, WIDTH
from transect.report.engine.charts.marks import Drawing
from transect.report.engine.charts.ticks import log_ticks

# What a row of dots or bars takes, below its label: the page's script moves rows up by as much.
ROW = 36
_MAX_LABEL = 50
MAX_HEAD = 54  # characters of a line of a heading
_ROOM = 60  # characters of both labels of a row

# Plain digits where they are short, k and M above, powers of ten below a thousandth.
LABEL = (
    "datum.value == 0 ? '0' : abs(datum.value) >= 1e4 ? format(datum.value, '.3~s') : "
    "abs(datum.value) < 1e-3 ? format(datum.value, '.2~e') : format(datum.value, '.4~r')"
)
SMALL = {"type": "circle", "size": 16, "opacity": 0.55}
DASHED = {"type": "rule", "strokeDash": [4, 3], "color": INK}


def as_given(field: str) -> dict[str, Any]:
    """Encode a field that holds the colour or shape itself."""
    return {"field": field, "type": "nominal", "scale": None}


SYMBOL = {"stroke": as_given("color"), "fill": as_given("fill"), "shape": as_given("shape")}


def number(field: str, kept: dict[str, Any]) -> dict[str, Any]:
    """Encode a number on a scale."""
    return {"field": field, "type": "quantitative", **kept}


def layer(rows: list[dict[str, Any]], mark: dict[str, Any], **encoding: Any) -> dict[str, Any]:
    """Return the layer of all marks of one kind; `m` of a row names the mark that it belongs to."""
    if rows and "m" in rows[0]:
        # Vega writes it as the mark's label; `render` makes of it what the page's script finds.
        encoding["description"] = {"field": "m", "type": "nominal"}
    # What has an infinite or missing number cannot be drawn.
    drawn = [row for row in rows if all(math.isfinite(value) for value in row.values() if isinstance(value, float))]
    return {"data": {"values": drawn}, "mark": mark, "encoding": encoding}


def layered(layers: list[dict[str, Any]], height: int, marks: list[Mark], axis: str, across: str = "") -> Drawing:
    """Return a Vega-Lite drawing; as plain data, for checking each layer costs more than drawing."""
    drawing = Drawing(layer=layers, width=WIDTH, height=height)
    drawing.marks, drawing.axis, drawing.across = marks, axis, across
    return drawing


def log_is_better(values: Iterable[float | None], ratio: float = 20) -> bool:
    """Whether positive values lie so far apart that a linear axis would hide the small ones."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return bool(known) and min(known) > 0 and max(known) / min(known) > ratio


def titled(title: str, log: bool) -> str:
    """Return the title of an axis, which says where it is logarithmic."""
    return f"{title}, log scale" if log and "log scale" not in title else title


def across(values: list[float], title: str, log: bool, *, same: bool = False) -> dict[str, Any]:
    """Return the axis on which the values of rows lie; `same`: it ends at the largest of them."""
    axis: dict[str, Any] = {"title": titled(title, log), "tickCount": 5, "labelExpr": LABEL}
    if not log:
        scale: dict[str, Any] = {"zero": True}
        if same and values:
            scale |= {"domain": [min(0.0, *values), 1.03 * max(values)], "nice": False}
        return {"axis": axis, "scale": scale}
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    room = 1.08 * (high / low) ** 0.03
    axis["values"] = log_ticks(low / room, high * room)
    return {"axis": axis, "scale": {"type": "log", "domain": [low / room, high * room], "nice": False}}


def down(rows: int) -> dict[str, Any]:
    """Return the axis of rows below each other, in pixels."""
    height = rows * ROW + 4
    return {"axis": None, "scale": {"domain": [0, height], "range": [0, height]}}


def row_labels(texts: Sequence[tuple[str, str]], y: dict[str, Any], heads: frozenset[int]) -> list[dict[str, Any]]:
    """Return the labels above rows, left and right, and lines between rows; `heads` are rows of a heading alone."""
    rows = [
        {
            "y": i * ROW + (22 if i in heads else 9),
            "left": short(left, _ROOM - len(right), MAX_HEAD if i in heads else _MAX_LABEL),
            "right": right,
            "m": f"@{i}",
        }
        for i, (left, right) in enumerate(texts)
    ]
    lines = [{"y": i * ROW + 0.5, "m": f"@{i}"} for i in range(1, len(texts)) if i - 1 not in heads]
    place = number("y", y)

    def words(some: list[dict[str, Any]], side: str, x: Any, **look: Any) -> dict[str, Any]:
        mark = {"type": "text", "align": side, "baseline": "middle", **look}
        return layer(some, mark, x={"value": x}, y=place, text={"field": side, "type": "nominal"})

    plain, bold = ([row for i, row in enumerate(rows) if (i in heads) is of_head] for of_head in (False, True))
    return [
        layer(lines, {"type": "rule", "color": RULE}, y=place),
        words(plain, "left", 0),
        words(plain, "right", "width", color=MUTED),
        *([words(bold, "left", 0, fontWeight=600)] if bold else []),
    ]


def short(text: str, room: int, most: int = _MAX_LABEL) -> str:
    """Cut a label in its middle: its end tells series of one framework and strategy apart."""
    most = max(12, min(most, room))
    if len(text) <= most:
        return text
    tail = most * 2 // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"
