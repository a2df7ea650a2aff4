"""Section: runtimes beside each other, by latency, batch and threads."""

from __future__ import annotations

from collections import Counter, defaultdict

from transect.analysis.bounds import run_bound
from transect.analysis.groups import Group, group_labels
from transect.analysis.statistics import quantile
from transect.domain.record import Record
from transect.report.blocks import (
    Block,
    Chart,
    Charts,
    Chip,
    Column,
    Heading,
    Prose,
    Section,
    Table,
    Value,
)
from transect.report.charts.plots import Dot, Line, dot_plot, line_plot, log_is_better
from transect.report.charts.theme import Style, legend, render
from transect.report.context import Context
from transect.report.findings.serving import faithful_groups
from transect.report.text import clean, count, number, percent, quantity, scale_for, spread

__all__ = ["runtimes_section"]


def runtimes_section(context: Context) -> Section:
    """Draw latency distributions, and throughput over batch and threads, of right results only."""
    blocks: list[Block] = []
    for workload in context.workloads("infer"):
        groups = faithful_groups(context, workload)
        left_out = [g for g in context.of("infer", workload) if g.ok and g not in groups]
        for provider in sorted({group.cell.provider or "cpu" for group in groups}):
            own = [group for group in groups if (group.cell.provider or "cpu") == provider]
            blocks.append(Heading(f"{workload} on {provider}"))
            blocks.append(Charts(items=_charts(context, f"{workload}-{provider}", own)))
        if left_out:
            text = f"{workload}: {count(len(left_out), 'point')} left out: the output is not right."
            blocks.append(Prose(text, quiet=True))
    if blocks:
        blocks += _conditions(context)
    else:
        blocks.append(Prose("No runtime was measured with a right result.", quiet=True))
    lead = (
        "Only the Run call is timed. Binding of inputs, copying of outputs and session creation "
        "are timed apart from it. In the latency charts the symbol is the median of the runs' "
        "medians, the thick line the middle half of all samples, the thin one the least sample to "
        "the 95th percentile, where 400 samples or more support one."
    )
    return Section(id="runtimes", title="Runtimes", lead=lead, blocks=blocks)


def _charts(context: Context, name: str, groups: list[Group]) -> list[Chart]:
    charts = []
    for batch in sorted({group.cell.batch or 1 for group in groups}):
        same = [group for group in groups if (group.cell.batch or 1) == batch]
        charts.append(_latency(context, f"{name}-{batch}", batch, same))
    for axis in ("batch", "threads"):
        charts += _throughput(context, name, groups, axis)
    return [chart for chart in charts if chart is not None]


def _latency(context: Context, name: str, batch: int, groups: list[Group]) -> Chart | None:
    found = [(group, s) for group in groups if (s := group.summary("latency"))]
    found.sort(key=lambda pair: (pair[1].median, pair[0].cell.id))
    if not found:
        return None
    labels = group_labels([group for group, _ in found], always=("threads",))
    scale = scale_for([summary.median for _, summary in found], "s")
    unit = scale.unit
    dots: list[Dot] = []
    rows: list[list[Value]] = []
    for group, summary in found:
        every = [value for r in group.ok for value in context.samples.get(r, "latency")]
        middle = (quantile(every, 0.25), quantile(every, 0.75)) if every else None
        # A tail percentile needs samples in the tail: twenty beyond the 95th.
        tail = quantile(every, 0.95) if len(every) >= 400 else None
        high = tail if tail is not None else (middle[1] if middle else summary.high)
        dots.append(
            Dot(
                label=labels[group.cell], value=summary.median / scale.factor,
                low=(min(every) if every else summary.low) / scale.factor,
                high=high / scale.factor,
                inner=(middle[0] / scale.factor, middle[1] / scale.factor) if middle else None,
                style=context.style(group), right=f"{scale.text(summary.median)} {unit}",
            )
        )  # fmt: skip
        bound = run_bound(group, context.rates)
        session, bind, copy = (group.summary(n) for n in ("session_time", "bind_time", "copy_time"))
        rows.append([
            labels[group.cell], scale.text(summary.median), spread(summary, scale),
            str(summary.count), str(len(every)) if every else "–",
            scale.text(tail), scale.text(bound.time_s if bound else None),
            quantity(session.median if session else None, "s"),
            quantity(bind.median if bind else None, "s"),
            quantity(copy.median if copy else None, "s"),
        ])  # fmt: skip
    columns = [
        Column("Point"), Column(f"Median ({unit})", numeric=True),
        Column("Range or interval", numeric=True), Column("Runs", numeric=True),
        Column("Samples", numeric=True), Column(f"95th percentile ({unit})", numeric=True),
        Column(f"Bound ({unit})", numeric=True), Column("Session", numeric=True),
        Column("Bind", numeric=True), Column("Copy", numeric=True),
    ]  # fmt: skip
    return Chart(
        title=f"Latency at batch {batch}",
        svg=render(
            dot_plot(dots, title=f"latency of one Run ({unit}), less is better"),
            alt_text=f"Latency at batch {batch}. Lowest: {dots[0].label}, {dots[0].right}.",
            name=f"latency-{name}",
        ),
        alt="Latency distributions, lowest median first.",
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )


def _throughput(context: Context, name: str, groups: list[Group], axis: str) -> list[Chart]:
    """One chart over batch or threads, the other held at the value most points have."""
    other = "threads" if axis == "batch" else "batch"
    values: dict[int, set[int]] = defaultdict(set)
    for group in groups:
        values[getattr(group.cell, other) or 1].add(getattr(group.cell, axis) or 1)
    if not values:
        return []
    held = max(values, key=lambda key: (len(values[key]), -key if other == "threads" else key))
    if len(values[held]) < 2:
        return []
    series: dict[tuple[str, str, str], list[Group]] = defaultdict(list)
    for group in groups:
        cell = group.cell
        if (getattr(cell, other) or 1) == held and group.values("throughput"):
            key = (cell.runtime or "", cell.exporter or "", cell.framework or "")
            series[key].append(group)
    labels = group_labels([g for some in series.values() for g in some], always=(axis,))
    lines, items, rows = [], [], []
    several = len({key[1] for key in series if key[1]}) > 1
    for (runtime, exporter, _), members in sorted(series.items()):
        members.sort(key=lambda group: getattr(group.cell, axis) or 1)
        base = context.styles.get(runtime)
        index = sorted({key[1] for key in series}).index(exporter) if several else 0
        shapes = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
        order = sorted({key[0] for key in series}).index(runtime)
        dashes = ((), (6, 3), (2, 2), (9, 3, 2, 3))
        style = Style(base.color, shapes[(order + index) % 6], dashes[(order + index) % 4])
        points, scatter = [], []
        for group in members:
            at, summary = float(getattr(group.cell, axis) or 1), group.summary("throughput")
            assert summary is not None
            points.append((at, summary.median))
            scatter += [(at, value) for value in group.values("throughput")]
            rows.append([labels[group.cell], number(at), number(summary.median),
                         spread(summary, scale_for([], "1")), str(summary.count)])  # fmt: skip
        lines.append(Line(points=points, scatter=scatter, style=style))
        items.append((f"{runtime} · {exporter}" if several and exporter else runtime, style))
    ticks = sorted({x for line in lines for x, _ in line.points})
    drawing = line_plot(
        lines, x_title=axis, y_title="samples/s", x_log=True, ticks=ticks,
        y_log=log_is_better([y for line in lines for _, y in line.points]),
    )  # fmt: skip
    columns = [
        Column("Point"), Column(axis.capitalize(), numeric=True),
        Column("Median (samples/s)", numeric=True), Column("Range or interval", numeric=True),
        Column("Runs", numeric=True),
    ]  # fmt: skip
    fixed = count(held, "thread") if other == "threads" else f"batch {held}"
    chart = Chart(
        title=f"Throughput over {axis}, {fixed}",
        svg=render(drawing, name=f"throughput-{axis}-{name}",
                   alt_text=f"Samples per second over {axis} at {fixed}, a line per runtime."),
        alt=f"Throughput over {axis}.",
        legend=legend(items),
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip
    return [chart]


def _conditions(context: Context) -> list[Block]:
    """What each runtime ran with: version, options, why measuring stopped, agreement."""
    by_runtime: dict[str, list[Group]] = defaultdict(list)
    for group in context.of("infer"):
        if group.ok:
            by_runtime[group.cell.runtime or "–"].append(group)
    rows: list[list[Value]] = []
    for runtime, groups in sorted(by_runtime.items()):
        records = [record for group in groups for record in group.ok]
        stops = Counter(str(r.details.get("stop_reason", "unknown")) for r in records)
        options: set[str] = set()
        for record in records:
            given = record.details.get("session_options")
            if isinstance(given, dict):
                options |= {f"{k}={v}" for k, v in given.items() if "thread" not in str(k)}
        agreement = min((v for g in groups for v in g.values("top1_agreement")), default=None)
        difference = max((v for g in groups for v in g.values("max_abs_difference")), default=None)
        rows.append([
            runtime, _set(records, "runtime_version"), _set(records, "provider_used"),
            clean(", ".join(sorted(options))) or "–",
            ", ".join(f"{reason}: {amount}" for reason, amount in sorted(stops.items())),
            percent(agreement, 1), number(difference) if difference is not None else "–",
            Chip("right", "good") if (agreement or 0) >= 1 else Chip("not compared", "warn")
            if agreement is None else Chip("differs", "bad"),
        ])  # fmt: skip
    columns = [
        Column("Runtime"), Column("Version"), Column("Provider used"), Column("Session options"),
        Column("Stopped by"), Column("Least agreement", numeric=True),
        Column("Largest difference", numeric=True), Column("Output"),
    ]  # fmt: skip
    caption = "What the runtimes ran with, threads aside"
    return [Table(columns=columns, rows=rows, caption=caption)]


def _set(records: list[Record], key: str) -> str:
    found = sorted({str(r.details[key]) for r in records if key in r.details})
    return clean(", ".join(found)) or "–"
