"""Latency under an offered load: requests come when they come, and waiting counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import grouped
from transect.analysis.serving import InferGroup
from transect.report.engine.blocks import Chip, Column, Heading, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, Point, Series, line_chart
from transect.report.engine.charts.theme import Style, palette
from transect.report.engine.columns import labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import Scale, clean, count, in_unit, one_decimal, scale_for
from transect.report.topics.serving.findings import faithful_groups
from transect.report.topics.serving.load_facts import is_saturated
from transect.report.topics.serving.series import RuntimeSeries

_MAX_LINES = 9
_MEASURES = {
    "median": ("load_latency", ()),
    "95th percentile": ("load_latency_p95", (6, 3)),
    "99th percentile": ("load_latency_p99", (2, 2)),
}


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
            "An open loop: latency is the result's time minus the request's arrival, so waiting "
            "counts. Requests arrive at random, the last one when as many are due at the offered "
            "rate. A hollow symbol stands where a runtime is saturated: in half of the runs or "
            "more, fewer than 99 % of the requests were served, or the last result came, a median "
            "latency aside, more than 2.5 % of the run's time after the last arrival (with n "
            "requests, fewer than 400, more than 0.5/√n of it: bursts weigh more). There the queue "
            "grows, and latency is that of the run's length. A 95th percentile needs 400 served requests, a 99th 2,000."
        )
    for workload, groups in every.items():
        groups.sort(key=lambda g: (g.cell.runtime, g.cell.sessions, g.cell.load or 0.0, g.cell.id))
        scale = scale_for([median(group, "load_latency") for group in groups], "s")
        panels = list(grouped(groups, _panel).items())
        yield _runtimes(context, workload, groups)
        for place, (names, members) in enumerate(panels[:MAX_PANELS]):
            yield _chart(f"{workload}-{place}", " · ".join(names), members)
        write = scale.text
        yield table(
            groups,
            [
                labelled(groups, "Runtime", always=("sessions", "load")),
                digits("Offered (1/s)", lambda group: group.cell.load),
                medians("Served (1/s)", "served_rate"),
                medians("Share served", "served_share", one_decimal),
                medians(f"Median ({scale.unit})", "load_latency", write),
                medians(f"95th ({scale.unit})", "load_latency_p95", write),
                medians(f"99th ({scale.unit})", "load_latency_p99", write),
                medians("Session", "session_time", in_unit("s")),
                digits("Runs", lambda group: len(group.values("load_latency"))),
                words("", lambda group: Chip("saturated", "warn") if is_saturated(group) else None),
            ],
            caption=f"{workload} under load",
            fold_title=f"{workload} under load",
        )


def _runtimes(context: Context, workload: str, groups: Sequence[InferGroup]) -> Part:
    """Draw the medians of all runtimes with the fewest sessions; None for one runtime."""
    least = min(group.cell.sessions for group in groups)
    shown = [g for g in groups if g.cell.sessions == least and g.values("load_latency")]
    alike = grouped(shown, lambda group: _panel(group))
    if len(alike) < 2:
        return None
    scale = scale_for([median(group, "load_latency") for group in shown], "s")
    lines = RuntimeSeries(context, shown)
    series = [
        Series(
            name=lines.name(members[0]),
            style=lines.style(members[0]),
            points=[_place(group, "load_latency", scale) for group in members],
        )
        for members in alike.values()
    ]
    return line_chart(
        series,
        shown,
        _columns(shown, scale),
        title=f"All runtimes with {count(least, 'session')}, median",
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
        *(
            medians(f"{measure.capitalize()} ({scale.unit})", metric, scale)
            for measure, (metric, _) in _MEASURES.items()
        ),
        medians("Share served", "served_share", one_decimal),
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


def _chart(name: str, title: str, groups: Sequence[InferGroup]) -> Part:
    scale = scale_for([median(group, "load_latency") for group in groups], "s")
    of_sessions = grouped(groups, lambda group: group.cell.sessions)
    colors = palette(len(of_sessions))
    series = []
    for place, (sessions, members) in enumerate(sorted(of_sessions.items())):
        for measure, (metric, dash) in _MEASURES.items():
            points = [_place(group, metric, scale) for group in members if group.values(metric)]
            if points:
                style = Style(colors[place].color, colors[place].shape, dash)
                series.append(Series(name=f"{count(sessions, 'session')}, {measure}", points=points, style=style))
    if not series:
        return None
    return line_chart(
        series,
        groups,
        _columns(groups, scale),
        title=title,
        x="offered requests per second",
        y=f"{scale.unit}, log scale",
        name=f"load-{name}",
        most=_MAX_LINES,
        y_log=True,
        alt=f"Latency from arrival to result over the offered load of {title}, a line per number "
        "of sessions and percentile.",
    )
