"""Rows below their labels: dots with their ends, and stacked bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from textwrap import wrap
from typing import Any

from transect.report.engine.blocks import Mark
from transect.report.engine.charts.inks import MUTED, PAPER, RULE
from transect.report.engine.charts.layers import (
    DASHED,
    MAX_HEAD,
    ROW,
    SMALL,
    SYMBOL,
    across,
    as_given,
    down,
    layer,
    layered,
    log_is_better,
    number,
    row_labels,
)
from transect.report.engine.charts.lines import line_plot
from transect.report.engine.charts.marks import Bar, Dot, Drawing, few, mark_of

__all__ = ["bar_plot", "dot_plot", "line_plot", "log_is_better"]


def dot_plot(
    rows: Sequence[Dot],
    *,
    title: str,
    rule: float | None = None,
    log: bool | None = None,
    among: Sequence[float] = (),
    band: tuple[float, float] | None = None,
    limits: tuple[float, float] | None = None,
) -> Drawing:
    """Rows of dots below their labels; `rule` is a dashed upright line across all rows, `band` an upright strip.

    Charts that get the same values `among` them have the same axis. A row whose `head` differs from that of the row
    before it has the head above it. Lines go no farther than `limits`; those that are cut there end in an arrow.
    """
    whole = rows
    cut = [_arrows(row, limits) for row in rows]
    rows = [_within(row, limits) for row in rows]
    every: list[float] = [*among, *(band or ()), *([] if rule is None else [rule])]
    for row in rows:
        ends = (row.value, row.low, row.high, row.bound, *row.points, *(row.inner or ()))
        every += [value for value in ends if value is not None]
    log = log_is_better(every) if log is None else log
    every = [value for value in every if math.isfinite(value)]
    if log:
        every = [value for value in every if value > 0]
        cut = [ends for row, ends in zip(rows, cut, strict=True) if row.value > 0]
        rows, whole = ([row for row in some if row.value > 0] for some in (rows, whole))
    x = across(every, title, log, same=bool(among))
    floor = min(every, default=0.0)
    base: list[dict[str, Any]] = []
    small: list[dict[str, Any]] = []
    places, heads, texts = _placed(rows)
    for i, row in zip(places, rows, strict=True):
        at = i * ROW + 25
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
                "shape": row.style.shape,
                "fill": PAPER if row.hollow else row.style.color,
                "m": f"@{i}",
            }
        )
        small += [{"y": at, "x": point, "color": row.style.color, "m": f"@{i}"} for point in few(row.points)]
    y = down(len(texts))

    def at_x(field: str) -> dict[str, Any]:
        return {"x": number(field, x), "y": number("y", y)}

    thin, thick = ({"type": "rule", "strokeWidth": w, "opacity": o} for w, o in ((1.5, 0.9), (6, 0.45)))
    layers = [
        layer(base, thin, **at_x("low"), x2={"field": "high"}, color=as_given("color")),
        layer(base, thick, **at_x("a"), x2={"field": "b"}, color=as_given("color")),
        layer(small, SMALL, **at_x("x"), color=as_given("color")),
        _bounds(base, x, y),
        layer(base, {"type": "point", "size": 62, "strokeWidth": 1.8, "opacity": 1}, **at_x("value"), **SYMBOL),
        *row_labels(texts, y, frozenset(heads)),
    ]
    arrows = [{**row, "x": x_, "shape": shape} for row, ends in zip(base, cut, strict=True) for x_, shape in ends]
    if arrows:
        tip = {"type": "point", "size": 45, "strokeWidth": 0, "opacity": 1}
        layers.append(layer(arrows, tip, **at_x("x"), fill=as_given("color"), shape=as_given("shape")))
    if rule is not None:
        layers.insert(0, layer([{"x": rule}], DASHED, x=number("x", x)))
    if band:
        strip = {"type": "rect", "color": RULE, "opacity": 0.6}
        layers.insert(0, layer([{"x": band[0], "b": band[1]}], strip, x=number("x", x), x2={"field": "b"}))
    # They tell the ends that the drawing cuts.
    marks = {
        place: mark_of(r.label, r.value, r.points, about=r.about, low=r.low, high=r.high, ends=r.ends, count=r.count)
        for place, r in zip(places, whole, strict=True)
    } | heads
    return layered(layers, len(texts) * ROW + 4, [marks[i] for i in range(len(texts))], title)


def _arrows(row: Dot, limits: tuple[float, float] | None) -> list[tuple[float, str]]:
    """Return where a row's line is cut, and the arrow there."""
    if limits is None:
        return []
    low, high = limits
    left = [(low, "triangle-left")] if row.low is not None and row.low < low else []
    return left + ([(high, "triangle-right")] if row.high is not None and row.high > high else [])


def _within(row: Dot, limits: tuple[float, float] | None) -> Dot:
    if limits is None or not _arrows(row, limits):
        return row
    low, high = limits
    return replace(row, low=max(row.low or low, low), high=min(high if row.high is None else row.high, high))


def _placed(rows: Sequence[Dot]) -> tuple[list[int], dict[int, Mark], list[tuple[str, str]]]:
    """Return the place of each row, the marks of the heads between them by place, and the labels of all."""
    places: list[int] = []
    heads: dict[int, Mark] = {}
    texts: list[tuple[str, str]] = []
    for head, members in groupby(rows, lambda row: row.head):
        of_head = list(members)
        lines = wrap(head, MAX_HEAD)
        begin = len(texts) + len(lines)
        for line in lines:
            # It stays while the filter leaves one of its rows.
            heads[len(texts)] = Mark(label="", parts=range(begin, begin + len(of_head)))
            texts.append((line, ""))
        places += range(len(texts), len(texts) + len(of_head))
        texts += [(row.label, row.right) for row in of_head]
    return places, heads, texts


def _bounds(rows: Sequence[dict[str, Any]], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    """Draw the bound of each row that has one, an upright mark."""
    bounds = [{**row, "top": row["y"] - 7, "bottom": row["y"] + 7} for row in rows if row["bound"] is not None]
    mark = {"type": "rule", "strokeWidth": 3, "color": MUTED}
    return layer(bounds, mark, x=number("bound", x), y=number("top", y), y2={"field": "bottom"})


def bar_plot(rows: Sequence[Bar], *, title: str) -> Drawing:
    """Stacked bars below their labels, or what lies where it begins."""
    data = []
    for i, row in enumerate(rows):
        at, start = i * ROW + 25, 0.0
        for place, (length, style) in enumerate(row.parts):
            start = row.starts[place] if row.starts else start
            # An edge of paper parts what is stacked, and would hide what is narrow.
            edge = style.color if row.starts else PAPER
            data.append(
                {"top": at - 7, "bottom": at + 7, "a": start, "b": start + length, "m": f"@{i}"}
                | {"fill": style.color, "edge": edge}
            )
            start += length
    x, y = across([], title, False), down(len(rows))
    bars = layer(
        data,
        {"type": "rect", "strokeWidth": 0.8},
        x=number("a", x),
        x2={"field": "b"},
        y=number("top", y),
        y2={"field": "bottom"},
        fill=as_given("fill"),
        stroke=as_given("edge"),
    )
    labels = row_labels([(row.label, row.right) for row in rows], y, frozenset())
    marks = [Mark(label=row.label, about=row.about) for row in rows]
    return layered([bars, *labels], len(rows) * ROW + 4, marks, title)
