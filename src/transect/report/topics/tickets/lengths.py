"""How long tickets are: their lengths beside the Gaussian that is fitted to them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from transect.analysis.groups import Group
from transect.report.engine.blocks import Chart, Heading, Part, digits
from transect.report.engine.charts.chart import MAX_PANELS, drawn
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import palette
from transect.report.engine.context import Context
from transect.report.engine.text import clean, number, percent
from transect.report.topics.classifiers.inputs import VIEWS, corpus_name
from transect.report.topics.tickets.findings import lengths_of

_NAMES = ("lengths", "Gaussian with their mean and deviation", "its 95 % bound", "95 % quantile")
_POINTS = 60


def length_parts(context: Context) -> Iterator[Part]:
    """Draw the lengths of each corpus and view, once for all treatments of names."""
    seen = set()
    groups = []
    for group in context.of("tokens"):
        key = (group.cell.corpus, group.cell.view, group.cell.stop_words)
        if key not in seen and lengths_of(group) is not None:
            seen.add(key)
            groups.append(group)
    if groups:
        yield Heading("How long tickets are")
    yield from (length_chart(context, group) for group in groups[:MAX_PANELS])


def length_chart(context: Context, group: Group[Any]) -> Chart:
    """Draw the share of tickets by their number of words, and where both bounds lie."""
    lengths = lengths_of(group)
    assert lengths is not None
    bars = lengths["histogram"]
    width = bars[0]["high"] - bars[0]["low"]
    even = [bar for bar in bars if bar["high"] - bar["low"] == width]
    total = sum(bar["tickets"] for bar in bars)
    outline = [((bar["low"] + bar["high"]) / 2, bar["tickets"] / total / width) for bar in even]
    end = max(bar["high"] for bar in even)
    mean, deviation = lengths["mean"], lengths["deviation"]
    top = max(height for _, height in outline)
    styles = palette(4)
    curves = [outline, _gaussian(mean, deviation, end)]
    curves += [[(lengths[bound], 0.0), (lengths[bound], top)] for bound in ("gaussian_95", "quantile_95")]
    lines = [
        Line(points=points, style=style, symbols=False, name=name, about=group)
        for points, style, name in zip(curves, styles, _NAMES, strict=True)
        if points
    ]
    cell = group.cell
    stop_words = ", with stop words" if cell.stop_words else ""
    title = clean(f"{corpus_name(context, cell.corpus)}, {VIEWS[cell.view]}{stop_words}")
    above = total - sum(bar["tickets"] for bar in even)
    return drawn(
        line_plot(lines, x_title="words of a ticket", y_title="share of tickets per word"),
        bars,
        [
            digits("From", lambda bar: bar["low"]),
            digits("below", lambda bar: bar["high"]),
            digits("Tickets", lambda bar: bar["tickets"]),
        ],
        title=title,
        name=f"lengths-{cell.id.split('~')[1]}",
        alt=f"{title}: lengths beside a Gaussian. Its 95 % bound is {number(lengths['gaussian_95'])} words, "
        f"the quantile {number(lengths['quantile_95'])}.",
        notes=(
            f"95 % bound of the Gaussian: {number(lengths['gaussian_95'])} words, which "
            f"{percent(lengths['gaussian_95_above'], 1)} of the tickets exceed; quantile: "
            f"{number(lengths['quantile_95'])}.",
            f"{above} longer ones are not drawn." if above else "",
        ),
    )


def _gaussian(mean: float, deviation: float, end: float) -> list[tuple[float, float]]:
    if not deviation:
        return []
    places = [end * n / _POINTS for n in range(_POINTS + 1)]
    scale = deviation * math.sqrt(2 * math.pi)
    return [(x, math.exp(-(((x - mean) / deviation) ** 2) / 2) / scale) for x in places]
