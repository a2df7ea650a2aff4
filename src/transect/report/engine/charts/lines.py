"""Series over a number: lines that have their names at their ends."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transect.report.engine.blocks import Mark
from transect.report.engine.charts.inks import INK, MUTED, PAPER, RULE
from transect.report.engine.charts.layers import (
    DASHED,
    LABEL,
    SMALL,
    SYMBOL,
    as_given,
    layer,
    layered,
    number,
    short,
    titled,
)
from transect.report.engine.charts.marks import Drawing, Line
from transect.report.engine.charts.ticks import log_ticks

# Series that have a colour and a name: more can neither be told apart nor named beside each other.
MAX_NAMED = 8
# Characters of a name at the end of its line, and pixels of one character and between two names.
_MAX_NAME, _LETTER, _APART = 24, 5.7, 12.5
# From where on the end of a line is beside its name.
_NEAR = 0.93


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scale:
    """The range of an axis, and where its values lie: from 0, its beginning, to 1."""

    low: float
    high: float
    log: bool

    def at(self, value: float) -> float:
        low, high, value = (
            (math.log(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        return (value - low) / (high - low) if high > low else 0.5

    def value(self, at: float) -> float:
        if self.log:
            return float(self.low * (self.high / self.low) ** at)
        return self.low + at * (self.high - self.low)


def line_plot(
    lines: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    x_log: bool = False,
    y_log: bool = False,
    y_zero: bool = True,
    ticks: Sequence[float] = (),
    rule: float | None = None,
    rule_name: str = "",
    band: tuple[float, float] | None = None,
    height: int = 230,
) -> Drawing:
    """Series over a quantitative axis. On a log axis values of zero or less are left out.

    The first lines that join points have their names at their ends, further ones are grey. `rule` is a dashed line across all of
    them, and `band` a strip, both at values of y.
    """
    lines = [_known(line, x_log=x_log, y_log=y_log) for line in lines]
    names = list(dict.fromkeys(line.name for line in lines if line.name and line.joined and line.points))
    named = _shortened(names[:MAX_NAMED]) if len(names) > 1 else {}
    every = [point for line in lines for point in (*line.points, *line.scatter)]
    x_scale = _scale([x for x, _ in every], log=x_log, zero=False, room=0.03 if ticks else 0.01)
    heights = [y for _, y in every] + ([] if rule is None or (y_log and rule <= 0) else [rule]) + list(band or ())
    y_scale = _scale(heights, log=y_log, zero=y_zero, room=0.04)
    room = max((len(name) for name in named.values()), default=0) * _LETTER + (21 if named else 0)
    place = {"x": number("x", _across(x_scale, x_title, ticks, room)), "y": number("y", _up(y_scale, y_title))}
    drawn = _Drawn(lines, [name for name in names if name not in named] if named else [])
    layers = []
    if band:
        strip: dict[str, Any] = {"type": "rect", "color": RULE, "opacity": 0.45}
        layers.append(layer([{"y": band[0], "b": band[1]}], strip, y=place["y"], y2={"field": "b"}))
    if drawn.small:
        layers.append(layer(drawn.small, SMALL, color=as_given("color"), **place))
    for (width, dash), rows in drawn.strokes.items():
        mark = {"type": "line", "strokeWidth": width, "strokeDash": list(dash)}
        layers.append(layer(rows, mark, color=as_given("color"), **place, detail={"field": "line", "type": "nominal"}))
    if drawn.symbols or not layers:
        point = {"type": "point", "strokeWidth": 1.8, "opacity": 1}
        size = number("size", {"scale": None})
        layers.append(layer(drawn.symbols, point, size=size, **SYMBOL, **place))
    if rule is not None:
        ends = {"y": rule, "a": x_scale.low, "b": x_scale.high}
        layers.append(layer([ends], DASHED, x=_at("a", place["x"]), x2={"field": "b"}, y=place["y"]))
        if rule_name:
            said = {"type": "text", "align": "left", "baseline": "bottom", "dy": -2, "color": MUTED}
            layers.append(layer([{"y": rule, "t": rule_name}], said, x={"value": 2}, y=place["y"], text=_words("t")))
    names_at = _ends(lines, named, drawn.of_name, x_scale, y_scale, height)
    if names_at:
        far = [row for row in names_at if x_scale.at(row["end"]) < _NEAR]
        thin = {"type": "rule", "strokeWidth": 0.6, "opacity": 0.6}
        to = {"x": _at("end", place["x"]), "y": _at("at", place["y"])}
        layers.append(layer(far, thin, color=as_given("color"), **to, x2={"field": "x"}, y2={"field": "y"}))
        # A name in a pale colour could not be read: a stroke of it stands before the name.
        stroke = {"type": "point", "shape": "stroke", "size": 90, "strokeWidth": 2.4, "xOffset": 8, "opacity": 1}
        layers.append(layer(names_at, stroke, color=as_given("color"), **place))
        text = {"type": "text", "align": "left", "baseline": "middle", "dx": 17, "color": INK}
        layers.append(layer(names_at, text, text=_words("t"), **place))
    made = layered(layers, height, drawn.marks, y_title, x_title)
    left = len(names) - len(named) if named else 0
    made.named = bool(named)
    made.said = f"Grey: {left} more, which the numbers name." if left else ""
    return made


def _at(field: str, place: Mapping[str, Any]) -> dict[str, Any]:
    """Encode another field on the axis of a place."""
    return {**place, "field": field}


def _words(field: str) -> dict[str, Any]:
    return {"field": field, "type": "nominal"}


def _known(line: Line, *, x_log: bool, y_log: bool) -> Line:
    """Return a line without what has no place on its axes."""
    kept = [i for i, (x, y) in enumerate(line.points) if _has_place(x, x_log) and _has_place(y, y_log)]
    dots = [i for i, (x, y) in enumerate(line.scatter) if _has_place(x, x_log) and _has_place(y, y_log)]
    if len(kept) == len(line.points) and len(dots) == len(line.scatter):
        return line
    at = {old: new for new, old in enumerate(kept)}
    if line.of:
        dots = [i for i in dots if line.of[i] in at]
    return replace(
        line,
        points=[line.points[i] for i in kept],
        scatter=[line.scatter[i] for i in dots],
        marks=[line.marks[i] for i in kept] if line.marks else (),
        of=[at[line.of[i]] for i in dots] if line.of else (),
    )


def _has_place(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


class _Drawn:
    """The rows of all layers, and what their marks stand for; the lines called `grey` have no colour of their own."""

    def __init__(self, lines: Sequence[Line], grey: Sequence[str]) -> None:
        # A layer for all marks of one kind: each layer takes as long to make as its drawing.
        self.strokes: dict[tuple[float, tuple[int, ...]], list[dict[str, Any]]] = defaultdict(list)
        self.small: list[dict[str, Any]] = []
        self.symbols: list[dict[str, Any]] = []
        self.marks: list[Mark] = []
        self.of_name: dict[str, int] = {}
        # Those without a name lie below those that have one.
        for at, line in sorted(enumerate(lines), key=lambda pair: pair[1].name not in grey):
            self._add(at, line, MUTED if line.name in grey else line.style.color)

    def _add(self, at: int, line: Line, color: str) -> None:
        first = len(self.marks)
        self.marks += line.marks
        itself = f"@{len(self.marks)}"
        self.of_name.setdefault(line.name, len(self.marks))
        self.marks.append(Mark(label=line.name, about=line.about, parts=range(first, len(self.marks))))
        refs = [f"@{first + i}" for i in range(len(line.marks))] or [itself] * len(line.points)
        points = [
            {"x": x, "y": y, "color": color, "line": at, "m": mark}
            for (x, y), mark in zip(line.points, refs, strict=True)
        ]
        of = [refs[place] for place in line.of] or [itself] * len(line.scatter)
        self.small += [
            {"x": x, "y": y, "color": color, "m": mark} for (x, y), mark in zip(line.scatter, of, strict=True)
        ]
        if line.joined and len(points) > 1:
            self.strokes[line.width, line.style.dash] += [{**point, "m": itself} for point in points]
        if line.symbols:
            fill = PAPER if line.hollow else color
            self.symbols += [{**point, "shape": line.style.shape, "fill": fill, "size": line.size} for point in points]


def _shortened(names: Sequence[str]) -> dict[str, str]:
    """Return what stands at the ends of lines: parts that all names have are left out."""
    parts = {name: name.split(" · ") for name in names}
    common = set.intersection(*(set(own) for own in parts.values())) if len(parts) > 1 else set()
    told = {name: " · ".join(part for part in own if part not in common) for name, own in parts.items()}
    return {name: short(text or name, _MAX_NAME, _MAX_NAME) for name, text in told.items()}


def _scale(values: Sequence[float], *, log: bool, zero: bool, room: float) -> _Scale:
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    if log:
        by = max(1.02, (high / low) ** room)
        return _Scale(low=low / by, high=high * by, log=True)
    low = min(low, 0.0) if zero else low
    by = room * (high - low) or abs(high) * room or 1.0
    # Nothing that cannot be negative looks as if it were.
    return _Scale(low=low if low == 0 else low - by, high=high + by, log=False)


def _across(scale: _Scale, title: str, ticks: Sequence[float], room: float) -> dict[str, Any]:
    made = _axis(scale, title, grid=False, domain=True, tickCount=6)
    made["scale"]["range"] = [0, {"expr": f"width - {room:g}"}]
    if ticks:
        # Numbers of ranks and the like double: nobody takes them for evenly spaced.
        made["axis"] |= {"title": title, "values": list(ticks)}
        if all(float(tick).is_integer() for tick in ticks):
            made["axis"] |= {"format": "d"}
            del made["axis"]["labelExpr"]
    return made


def _up(scale: _Scale, title: str) -> dict[str, Any]:
    above = {"titleAngle": 0, "titleX": 0, "titleY": -12, "titleAlign": "left", "titleBaseline": "bottom"}
    return _axis(scale, title, tickCount=5, **above)


def _axis(scale: _Scale, title: str, **look: Any) -> dict[str, Any]:
    axis = {"title": titled(title, scale.log), "labelExpr": LABEL, **look}
    if scale.log:
        axis["values"] = log_ticks(scale.low, scale.high)
    kind = {"type": "log"} if scale.log else {"zero": False}
    return {"axis": axis, "scale": {**kind, "domain": [scale.low, scale.high], "nice": False}}


def _ends(
    lines: Sequence[Line], names: Mapping[str, str], marks: Mapping[str, int], x: _Scale, y: _Scale, height: float
) -> list[dict[str, Any]]:
    """Place each name beside the drawing, as near to the end of its line as the other names leave room."""
    wanted: dict[str, tuple[float, float, Line]] = {}
    for line in lines:
        if line.name in names and line.name not in wanted and line.joined and line.points:
            wanted[line.name] = (*max(line.points), line)
    # Of two ends at one height, that which is farther off has its name lower.
    order = sorted(wanted, key=lambda name: (-wanted[name][1], -wanted[name][0]))
    tops: list[float] = []
    for name in order:
        top = (1 - y.at(wanted[name][1])) * height
        tops.append(max([top, *(at + _APART for at in tops[-1:])]))
    # What was pushed out below moves up again, and the names above it with it.
    lowest = height
    for at in range(len(tops) - 1, -1, -1):
        tops[at] = min(tops[at], lowest)
        lowest = tops[at] - _APART
    return [
        {
            "x": x.high,
            "y": y.value(1 - top / height),
            "end": wanted[name][0],
            "at": wanted[name][1],
            "t": names[name],
            "color": wanted[name][2].style.color,
            "m": f"~{marks[name]}",
        }
        for name, top in zip(order, tops, strict=True)
    ]
