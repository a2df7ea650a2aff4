"""The four kinds of drawing in the report: dots, lines, stacked bars, and their shared parts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from transect.report.engine.blocks import Mark
from transect.report.engine.charts.inks import INK, MUTED, PAPER, RULE, WIDTH
from transect.report.engine.charts.marks import Bar, Dot, Drawing, Line, few, mark_of
from transect.report.engine.charts.ticks import log_ticks

_ROW = 36
_MAX_LABEL = 46
_ROOM = 60  # characters of both labels of a row

# Plain digits where they are short, k and M above, powers of ten below a thousandth.
_LABEL = (
    "datum.value == 0 ? '0' : abs(datum.value) >= 1e4 ? format(datum.value, '.3~s') : "
    "abs(datum.value) < 1e-3 ? format(datum.value, '.2~e') : format(datum.value, '.4~r')"
)


def log_is_better(values: Iterable[float | None], ratio: float = 20) -> bool:
    """Whether positive values lie so far apart that a linear axis would hide the small ones."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return bool(known) and min(known) > 0 and max(known) / min(known) > ratio


def dot_plot(
    rows: Sequence[Dot], *, title: str, rule: float | None = None, log: bool | None = None, among: Sequence[float] = ()
) -> Drawing:
    """Rows of dots below their labels; `rule` is a dashed upright line across all rows.

    Charts that get the same values `among` them have the same axis.
    """
    every: list[float] = [*among, rule] if rule is not None else [*among]
    for row in rows:
        ends = (row.value, row.low, row.high, row.bound, *row.points, *(row.inner or ()))
        every += [value for value in ends if value is not None]
    log = log_is_better(every) if log is None else log
    every = [value for value in every if math.isfinite(value)]
    if log:
        every = [value for value in every if value > 0]
        rows = [row for row in rows if row.value > 0]
    x = _x(every, title, log, same=bool(among))
    floor = min(every, default=0.0)
    base: list[dict[str, Any]] = []
    small: list[dict[str, Any]] = []
    for i, row in enumerate(rows):
        at = i * _ROW + 25
        inner = row.inner or (row.value, row.value)
        base.append(
            {
                "y": at,
                "value": row.value,
                "low": max(row.low or row.value, floor) if log else (row.value if row.low is None else row.low),
                "high": row.value if row.high is None else row.high,
                "a": inner[0],
                "b": inner[1],
                "bound": row.bound,
                "color": row.style.color,
                "shape": row.style.symbol,
                "fill": PAPER if row.hollow else row.style.color,
                "m": f"@{i}",
            }
        )
        small += [{"y": at, "x": point, "color": row.style.color, "m": f"@{i}"} for point in few(row.points)]
    y = _y(len(rows))

    def at_x(field: str) -> dict[str, Any]:
        return {"x": _number(field, x), "y": _number("y", y)}

    bounds = [{**row, "top": row["y"] - 7, "bottom": row["y"] + 7} for row in base if row["bound"] is not None]
    layers = [
        _layer(
            base,
            {"type": "rule", "strokeWidth": 1.5, "opacity": 0.9},
            **at_x("low"),
            x2={"field": "high"},
            color=_as_given("color"),
        ),
        _layer(
            base,
            {"type": "rule", "strokeWidth": 6, "opacity": 0.45},
            **at_x("a"),
            x2={"field": "b"},
            color=_as_given("color"),
        ),
        _layer(small, _SMALL, **at_x("x"), color=_as_given("color")),
        _layer(
            bounds,
            {"type": "rule", "strokeWidth": 3, "color": MUTED},
            x=_number("bound", x),
            y=_number("top", y),
            y2={"field": "bottom"},
        ),
        _layer(base, {"type": "point", "size": 62, "strokeWidth": 1.8, "opacity": 1}, **at_x("value"), **_SYMBOL),
        *_labels([(row.label, row.right) for row in rows], y),
    ]
    if rule is not None:
        layers.insert(0, _layer([{"x": rule}], _DASHED, x=_number("x", x)))
    marks = [
        mark_of(
            row.label,
            row.value,
            row.points,
            about=row.about,
            low=row.low,
            high=row.high,
            ends=row.ends,
            count=row.count,
        )
        for row in rows
    ]
    return _layered(layers, len(rows) * _ROW + 4, marks, title)


def bar_plot(rows: Sequence[Bar], *, title: str) -> Drawing:
    """Stacked bars below their labels."""
    data = []
    for i, row in enumerate(rows):
        at, start = i * _ROW + 25, 0.0
        for length, style in row.parts:
            data.append(
                {"top": at - 7, "bottom": at + 7, "a": start, "b": start + length, "color": style.color, "m": f"@{i}"}
            )
            start += length
    x = _x([], title, False)
    y = _y(len(rows))
    bars = _layer(
        data,
        {"type": "rect", "stroke": PAPER, "strokeWidth": 0.8},
        x=_number("a", x),
        x2={"field": "b"},
        y=_number("top", y),
        y2={"field": "bottom"},
        color=_as_given("color"),
    )
    labels = _labels([(row.label, row.right) for row in rows], y)
    marks = [Mark(label=row.label, about=row.about) for row in rows]
    return _layered([bars, *labels], len(rows) * _ROW + 4, marks, title)


def line_plot(
    lines: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    x_log: bool = False,
    y_log: bool = False,
    ticks: Sequence[float] = (),
    rule: float | None = None,
    height: int = 230,
) -> Drawing:
    """Series over a quantitative axis. On a log axis values of zero or less are left out."""
    axis: dict[str, Any] = {"title": x_title, "grid": False, "domain": True, "tickCount": 6}
    if ticks:
        whole = all(float(tick).is_integer() for tick in ticks)
        axis |= {"values": list(ticks), **({"format": "d"} if whole else {"labelExpr": _LABEL})}
    x_scale: dict[str, Any] = {"type": "log", "base": 2} if x_log else {"zero": False}
    y_scale: dict[str, Any] = {"type": "log"} if y_log else {"zero": True}
    x_kept: dict[str, Any] = {"axis": axis, "scale": {**x_scale, "nice": False, "padding": 14 if ticks else 2}}
    heights = [y for line in lines for _, y in (*line.points, *line.scatter) if math.isfinite(y)]
    y_axis: dict[str, Any] = {
        "title": y_title,
        "tickCount": 5,
        "labelExpr": _LABEL,
        "titleAngle": 0,
        "titleX": 0,
        "titleY": -12,
        "titleAlign": "left",
        "titleBaseline": "bottom",
    }
    if y_log:
        heights = [*(y for y in heights if y > 0), *([rule] if rule else [])] or [1.0]
        low, high = min(heights) / 1.2, max(heights) * 1.2
        y_axis["values"] = log_ticks(low, high)
        y_scale |= {"domain": [low, high], "nice": False}
    y_kept: dict[str, Any] = {"axis": y_axis, "scale": y_scale}
    # A layer for all marks of one kind: each layer takes as long to make as its drawing.
    strokes: dict[tuple[float, tuple[int, ...]], list[dict[str, Any]]] = defaultdict(list)
    small: list[dict[str, Any]] = []
    symbols: list[dict[str, Any]] = []
    marks: list[Mark] = []
    for number, line in enumerate(lines):
        style, first = line.style, len(marks)
        marks += line.marks
        line_itself = f"@{len(marks)}"
        marks.append(Mark(label=line.name, about=line.about, parts=range(first, len(marks))))
        refs = [f"@{first + i}" for i in range(len(line.marks))] or [line_itself] * len(line.points)
        points = [
            {"x": x, "y": y, "color": style.color, "line": number, "m": mark}
            for (x, y), mark in zip(line.points, refs, strict=True)
            if not y_log or y > 0
        ]
        of = [refs[place] for place in line.of] or [line_itself] * len(line.scatter)
        small += [
            {"x": x, "y": y, "color": style.color, "m": mark}
            for (x, y), mark in zip(line.scatter, of, strict=True)
            if not y_log or y > 0
        ]
        if line.joined and len(points) > 1:
            strokes[line.width, style.dash] += [{**point, "m": line_itself} for point in points]
        if line.symbols:
            fill = PAPER if line.hollow else style.color
            symbols += [{**point, "shape": style.symbol, "fill": fill} for point in points]
    place = {"x": _number("x", x_kept), "y": _number("y", y_kept)}
    layers = [_layer(small, _SMALL, color=_as_given("color"), **place)] if small else []
    for (width, dash), rows in strokes.items():
        mark = {"type": "line", "strokeWidth": width, "strokeDash": list(dash)}
        layers.append(
            _layer(rows, mark, color=_as_given("color"), **place, detail={"field": "line", "type": "nominal"})
        )
    if symbols or not layers:
        point = {"type": "point", "size": 58, "strokeWidth": 1.8, "opacity": 1}
        layers.append(_layer(symbols, point, **_SYMBOL, **place))
    if rule is not None:
        layers.append(_layer([{"y": rule}], _DASHED, y=_number("y", y_kept)))
    return _layered(layers, height, marks, y_title, x_title)


_SMALL = {"type": "circle", "size": 16, "opacity": 0.55}
_DASHED = {"type": "rule", "strokeDash": [4, 3], "color": INK}


def _as_given(field: str) -> dict[str, Any]:
    """Encode a field that holds the colour or shape itself."""
    return {"field": field, "type": "nominal", "scale": None}


_SYMBOL = {"stroke": _as_given("color"), "fill": _as_given("fill"), "shape": _as_given("shape")}


def _number(field: str, kept: dict[str, Any]) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", **kept}


def _layer(rows: list[dict[str, Any]], mark: dict[str, Any], **encoding: Any) -> dict[str, Any]:
    if rows and "m" in rows[0]:
        # Vega writes it as the mark's label; `render` makes of it what the page's script finds.
        encoding["description"] = {"field": "m", "type": "nominal"}
    return {"data": _data(rows), "mark": mark, "encoding": encoding}


def _layered(layers: list[dict[str, Any]], height: int, marks: list[Mark], axis: str, across: str = "") -> Drawing:
    """Return a Vega-Lite drawing; as plain data, for checking each layer costs more than drawing."""
    drawing = Drawing(layer=layers, width=WIDTH, height=height)
    drawing.marks, drawing.axis, drawing.across = marks, axis, across
    return drawing


def _labels(texts: Sequence[tuple[str, str]], y: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [
        {"y": i * _ROW + 9, "left": _short(left, _ROOM - len(right)), "right": right, "m": f"@{i}"}
        for i, (left, right) in enumerate(texts)
    ]
    lines = [{"y": i * _ROW + 0.5, "m": f"@{i}"} for i in range(1, len(texts))]
    place = _number("y", y)

    def words(side: str, x: Any, **look: Any) -> dict[str, Any]:
        mark = {"type": "text", "align": side, "baseline": "middle", **look}
        return _layer(rows, mark, x={"value": x}, y=place, text={"field": side, "type": "nominal"})

    return [
        _layer(lines, {"type": "rule", "color": RULE}, y=place),
        words("left", 0),
        words("right", "width", color=MUTED),
    ]


def _short(text: str, room: int) -> str:
    """Cut a label in its middle: its end tells series of one framework and strategy apart."""
    most = max(12, min(_MAX_LABEL, room))
    if len(text) <= most:
        return text
    tail = most * 2 // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def _x(values: list[float], title: str, log: bool, *, same: bool = False) -> dict[str, Any]:
    scale: dict[str, Any] = {"type": "log"} if log else {"zero": True}
    if same and not log and values:
        scale |= {"domain": [min(0.0, *values), 1.03 * max(values)], "nice": False}
    low, high = (min(values), max(values)) if log and values else (1.0, 1.0)
    room = 1.08 * (high / low) ** 0.03
    if log:
        scale |= {"domain": [low / room, high * room], "nice": False}
    axis: dict[str, Any] = {"title": title, "tickCount": 5, "labelExpr": _LABEL}
    if log:
        axis["values"] = log_ticks(low / room, high * room)
    return {"axis": axis, "scale": scale}


def _y(rows: int) -> dict[str, Any]:
    height = rows * _ROW + 4
    return {"axis": None, "scale": {"domain": [0, height], "range": [0, height]}}


def _data(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Hand rows over; one with an infinite or missing number cannot be drawn and is left out."""
    drawn = [row for row in rows if all(math.isfinite(value) for value in row.values() if isinstance(value, float))]
    return {"values": drawn}
