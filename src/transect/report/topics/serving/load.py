"""Latency under an offered load: requests come when they come, and waiting counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import grouped
from transect.analysis.serving import InferGroup
from transect.report.engine.blocks import Chip, Column, Heading, Part, digits, note, table, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.columns import labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import Scale, clean, count, in_unit, one_decimal, scale_for
from transect.report.topics.serving.facts import faithful_groups
from transect.report.topics.serving.load_facts import is_saturated
from transect.report.topics.serving.series import RuntimeSeries

_MAX_LINES = 9
_MEASURES = {"Median": "load_latency", "95th": "load_latency_p95", "99th": "load_latency_p99"}


def load_blocks(context: Context) -> Iterator[Part]:
    """Draw latency over offered load, a chart per runtime; nothing without cells under load."""
    every = {
        name: groups
        for name in context.workloads("infer")
        if (groups := [g for g in faithful_groups(context, name) if g.cell.load is not None])
    }
    if every:
        yield Heading("Under load")
        yield note(
            "An open loop: latency is the result's time minus the request's arrival, so waiting counts. A hollow symbol stands "
            "where a runtime is saturated: there the queue grows, and latency is that of the run's length. A 95th percentile "
            "needs 400 served requests, a 99th 2,000."
        )
    for workload, groups in every.items():
        groups.sort(key=lambda g: (g.cell.runtime, g.cell.sessions, g.cell.load or 0.0, g.cell.id))
        scale = scale_for([median(group, "load_latency") for group in groups], "s")
        yield _chart(workload, context, groups) or table(
            groups, _columns(groups, scale), caption=f"{workload} under load"
        )


def _chart(workload: str, context: Context, groups: Sequence[InferGroup]) -> Part:
    """Draw the medians over the load, a line for each runtime and number of sessions."""
    shown = [g for g in groups if g.values("load_latency")]
    scale = scale_for([median(group, "load_latency") for group in shown], "s")
    lines = RuntimeSeries(context, shown)
    several = len({group.cell.sessions for group in shown}) > 1
    series = [
        Series(
            name=lines.name(members[0]) + (f", {count(members[0].cell.sessions, 'session')}" if several else ""),
            style=lines.style(members[0]),
            points=[_place(group, "load_latency", scale) for group in members],
        )
        for members in grouped(shown, lambda group: (_panel(group), group.cell.sessions)).values()
    ]
    if not series:
        return None
    return line_chart(
        series,
        groups,
        _columns(groups, scale),
        title=f"{workload}: median time from a request's arrival to its result",
        x="offered requests per second",
        y=f"{scale.unit}, log scale",
        y_log=True,
        name=f"load-{workload}",
        most=_MAX_LINES,
        alt=f"Median latency from arrival to result over the offered load, {workload}, a line per runtime.",
    )


def _place(group: InferGroup, metric: str, scale: Scale) -> Point:
    values = [value / scale.factor for value in group.values(metric)]
    return Point(x=group.cell.load or 0.0, repeats=values, hollow=is_saturated(group), about=group)


def _columns(groups: Sequence[InferGroup], scale: Scale) -> list[Column[InferGroup]]:
    return [
        labelled(groups, "Runtime", always=("sessions", "load")),
        digits("Offered (1/s)", lambda group: group.cell.load),
        medians("Served (1/s)", "served_rate"),
        medians("Share served", "served_share", one_decimal),
        *(medians(f"{name} ({scale.unit})", metric, scale) for name, metric in _MEASURES.items()),
        medians("Session", "session_time", in_unit("s")),
        digits("Runs", lambda group: len(group.values("load_latency"))),
        words("", lambda group: Chip("saturated", "warn") if is_saturated(group) else None),
    ]


def _panel(group: InferGroup) -> tuple[str, ...]:
    """Name what a chart has in common: all but the load and the sessions."""
    cell = group.cell
    options = f"options {cell.options}" if cell.options != "equal" else ""
    parts = (
        cell.runtime,
        cell.exporter or "",
        cell.provider,
        options,
        cell.precision if cell.precision != "fp32" else "",
        f"batch {cell.batch}, {count(cell.threads, 'thread')}",
    )
    return tuple(clean(part) for part in parts if part)
