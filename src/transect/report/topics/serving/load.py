"""Latency under an offered load: requests come when they come, and waiting counts; who keeps up with the highest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import grouped
from transect.analysis.serving import InferGroup, identity_size, versions, was_compared
from transect.report.engine.blocks import Chip, Column, Heading, Part, digits, note, table, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.columns import labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, median, names
from transect.report.engine.text import Scale, count, in_unit, number, scale_for, tenths
from transect.report.topics.serving.facts import faithful_groups
from transect.report.topics.serving.load_facts import highest_load, is_saturated, saturation
from transect.report.topics.serving.series import RuntimeSeries
from transect.stats.comparisons import Confidence
from transect.stats.samples import MIN_INTERVAL_VALUES

_MAX_LINES = 9
_MEASURES = {"Median": "load_latency", "95th": "load_latency_p95", "99th": "load_latency_p99"}


def _under_load(context: Context, workload: str) -> list[InferGroup]:
    return [group for group in faithful_groups(context, workload) if group.cell.load is not None]


def offered_load_findings(context: Context) -> list[Finding]:
    """Say per workload and number of sessions which runtime serves the highest offered load."""
    found = []
    for workload in context.workloads("infer"):
        if identity_size(workload) is None:
            alike = grouped(_under_load(context, workload), lambda group: group.cell.apart_from("runtime", "load"))
            found += [finding for members in alike.values() if (finding := _finding(workload, members)) is not None]
    return found


def _finding(workload: str, groups: Sequence[InferGroup]) -> Finding | None:
    """Compare runtimes at the loads that were offered to all; None for one runtime."""
    of_runtime = grouped(groups, lambda group: group.cell.runtime)
    offered = [{group.cell.load or 0.0 for group in members} for members in of_runtime.values()]
    common = sorted(set.intersection(*offered))
    if len(of_runtime) < 2 or not common:
        return None
    able = {name: [group for group in members if group.cell.load in common] for name, members in of_runtime.items()}
    highest = {name: highest_load(members) for name, members in able.items()}
    cell = groups[0].cell
    where = [*_point(groups[0]), count(cell.sessions, "session"), f"from {cell.exporter}" if cell.exporter else ""]
    return Finding(
        subject=workload,
        scope=f"on {', '.join(filter(None, where))}",
        kind="load",
        claim=_claim(highest, common),
        confidence=_confidence(able, highest, common),
        evidence=joined(
            f"of {count(len(common), 'load')} offered to all; above it the queue grows",
            f"{count(min(len(group.ok) for members in able.values() for group in members), 'run')} each",
        ),
    )


def _point(group: InferGroup) -> list[str]:
    """Name the provider and what else is not usual of a point, its batch and its threads."""
    cell = group.cell
    precision = cell.precision if cell.precision != "fp32" else ""
    options = f"options {cell.options}" if cell.options != "equal" else ""
    return [cell.provider, precision, options, f"batch {cell.batch}", count(cell.threads, "thread")]


def _claim(highest: dict[str, float], common: Sequence[float]) -> str:
    best = max(highest.values())
    if best == 0:
        return f"no runtime keeps up with the lowest load offered, {number(common[0])} requests/s."
    first = [name for name, load in highest.items() if load == best]
    alike = " alike" if len(first) == len(highest) else ""
    does = f"{names(first, 9)}{alike} {'keeps' if len(first) == 1 else 'keep'} up"
    most = ", the highest load offered" if best == common[-1] else ""
    others = sorted((-load, name) for name, load in highest.items() if load < best)
    listed = names([f"{name} with {number(-load) if load else 'none'}" for load, name in others], 99)
    return f"{does} with {number(best)} requests/s{most}{'; ' if listed else ''}{listed}."


def _confidence(able: dict[str, list[InferGroup]], highest: dict[str, float], common: Sequence[float]) -> Confidence:
    """Confirmed needs runs that all agree on both sides of each runtime's highest load."""
    if len(set(highest.values())) == 1:
        return Confidence.INCONCLUSIVE
    every = [group for members in able.values() for group in members]
    above = {name: next((load for load in common if load > most), None) for name, most in highest.items()}
    beside = [
        group for name, members in able.items() for group in members if group.cell.load in (highest[name], above[name])
    ]
    agree = all(
        len(runs := saturation(group)) >= MIN_INTERVAL_VALUES and set(runs) == {is_saturated(group)} for group in beside
    )
    sound = all(map(was_compared, every)) and not any(group.noisy for group in every)
    return Confidence.CONFIRMED if agree and sound and len(versions(every)) < 2 else Confidence.PROVISIONAL


def load_blocks(context: Context) -> Iterator[Part]:
    """Draw latency over offered load, a chart per workload; nothing without cells under load."""
    every = {name: groups for name in context.workloads("infer") if (groups := _under_load(context, name))}
    if every:
        yield Heading("Under load")
        yield note(
            "An open loop: latency is the result's time minus the request's arrival, so waiting counts. A hollow symbol stands "
            "where a runtime is saturated: there the queue grows, and latency is that of the run's length. A 95th percentile "
            "needs 400 served requests, a 99th 2,000."
        )
    for workload, groups in every.items():
        groups.sort(key=lambda g: (g.cell.runtime, g.cell.sessions, g.cell.load or 0.0, g.cell.id))
        yield _chart(workload, context, groups)


def _chart(workload: str, context: Context, groups: Sequence[InferGroup]) -> Part:
    """Draw the medians over the load, a line for each runtime and number of sessions; without any list what there is."""
    shown = [g for g in groups if g.values("load_latency")]
    scale = scale_for([median(group, "load_latency") for group in shown], "s")
    columns = _columns(groups, scale)
    if not shown:
        return table(groups, columns, caption=f"{workload} under load")
    lines = RuntimeSeries(context, shown)
    several = len({group.cell.sessions for group in shown}) > 1
    alike = grouped(shown, lambda g: (g.cell.runtime, g.cell.exporter, g.cell.sessions, *_point(g)))
    series = [
        Series(
            name=lines.name(members[0]) + (f", {count(members[0].cell.sessions, 'session')}" if several else ""),
            style=lines.style(members[0]),
            points=[
                Point(
                    x=group.cell.load or 0.0,
                    repeats=[value / scale.factor for value in group.values("load_latency")],
                    hollow=is_saturated(group),
                    about=group,
                )
                for group in members
            ],
        )
        for members in alike.values()
    ]
    return line_chart(
        series,
        groups,
        columns,
        title=f"{workload}: median time from a request's arrival to its result",
        x="offered requests per second",
        y=f"{scale.unit}, log scale",
        y_log=True,
        name=f"load-{workload}",
        most=_MAX_LINES,
    )


def _columns(groups: Sequence[InferGroup], scale: Scale) -> list[Column[InferGroup]]:
    return [
        labelled(groups, "Runtime", always=("sessions", "load")),
        digits("Offered (1/s)", lambda group: group.cell.load),
        medians("Served (1/s)", "served_rate"),
        medians("Share served", "served_share", tenths),
        *(medians(f"{name} ({scale.unit})", metric, scale) for name, metric in _MEASURES.items()),
        medians("Session", "session_time", in_unit("s")),
        digits("Runs", lambda group: len(group.values("load_latency"))),
        words("", lambda group: Chip("saturated", "warn") if is_saturated(group) else None),
    ]
