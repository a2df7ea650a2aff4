"""Section: runtimes beside each other, by latency, batch and threads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from transect.analysis.bounds import run_bound
from transect.analysis.groups import Group, group_labels
from transect.analysis.statistics import quantile
from transect.report.blocks import (
    Block,
    Body,
    Chart,
    Charts,
    Chip,
    Heading,
    Prose,
    Value,
    digits,
    table,
    words,
)
from transect.report.charts.chart import MOST_DRAWN, MOST_PANELS, dot_chart, drawn
from transect.report.charts.plots import Dot, Line, line_plot, log_is_better
from transect.report.charts.theme import Style, legend
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.findings.serving import by_provider, faithful_groups
from transect.report.sections.columns import metric_columns, ranked
from transect.report.text import clean, count, number, percent, quantity, scale_for

__all__ = ["runtimes_body"]

# A tail percentile needs samples in the tail: twenty beyond the 95th.
_TAIL_SAMPLES = 400
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_DASHES = ((), (6, 3), (2, 2), (9, 3, 2, 3))


def runtimes_body(context: Context) -> Body:
    """Draw latency distributions, and throughput over batch and threads, of right results only."""
    blocks: list[Block] = []
    for workload in context.workloads("infer"):
        groups = faithful_groups(context, workload)
        for provider, own in by_provider(groups).items():
            blocks.append(Heading(f"{workload} on {provider}"))
            blocks.append(Charts(items=_charts(context, f"{workload}-{provider}", own)))
        ended = sum(bool(group.ok) for group in context.of("infer", workload))
        if ended > len(groups):
            points = count(ended - len(groups), "point")
            text = f"{workload}: {points} left out: the output is not right."
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
    return Body(lead=lead, blocks=blocks)


def _at(group: Group, axis: str) -> int:
    """Return a group's batch or threads."""
    value: int = group.cell.get(axis) or 1
    return value


def _charts(context: Context, name: str, groups: list[Group]) -> list[Chart]:
    of_batch: dict[int, list[Group]] = defaultdict(list)
    for group in groups:
        of_batch[_at(group, "batch")].append(group)
    panels = sorted(of_batch.items())[:MOST_PANELS]
    charts = [_latency(context, f"{name}-{batch}", batch, same) for batch, same in panels]
    charts += [_throughput(context, name, groups, axis) for axis in ("batch", "threads")]
    return [chart for chart in charts if chart is not None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Latency:
    """A group with all its latency samples, where they are kept."""

    group: Group
    samples: list[float]

    @property
    def middle(self) -> tuple[float, float] | None:
        """Ends of the middle half of the samples."""
        if not self.samples:
            return None
        return quantile(self.samples, 0.25), quantile(self.samples, 0.75)

    @property
    def tail(self) -> float | None:
        """95th percentile, or None when too few samples support one."""
        return quantile(self.samples, 0.95) if len(self.samples) >= _TAIL_SAMPLES else None


def _latency(context: Context, name: str, batch: int, groups: list[Group]) -> Chart | None:
    first = ranked(groups, "latency", best_low=True)
    labels = group_labels(first, always=("threads",))
    scale = scale_for([median(group, "latency") for group in first], "s")
    unit = scale.unit
    # Samples are read again from the records: only of what is drawn.
    read = {
        id(group): [
            value for record in group.ok for value in context.originals.samples(record, "latency")
        ]
        for group in first[:MOST_DRAWN]
    }
    rows = [_Latency(group=group, samples=read.get(id(group), [])) for group in first]

    def dot(row: _Latency) -> Dot:
        summary, middle = row.group.summary("latency"), row.middle
        if summary is None:
            raise ValueError(f"{row.group.cell.id}: ranked by a latency that it lacks")
        ends = [end for end in (row.tail, middle and middle[1], summary.high) if end is not None]
        return Dot(
            label=labels[row.group.cell], value=summary.median / scale.factor,
            low=(min(row.samples) if row.samples else summary.low) / scale.factor,
            high=ends[0] / scale.factor,
            inner=(middle[0] / scale.factor, middle[1] / scale.factor) if middle else None,
            style=context.style(row.group), right=f"{scale.text(summary.median)} {unit}",
        )  # fmt: skip

    def of_group(value: Callable[[Group], Value]) -> Callable[[_Latency], Value]:
        return lambda row: value(row.group)

    def bound(group: Group) -> str:
        limit = run_bound(group, context.rates)
        return scale.text(limit.time_s if limit else None)

    return dot_chart(
        rows, dot,
        [
            words("Point", lambda row: labels[row.group.cell]),
            *(digits(column.title, of_group(column.value))
              for column in metric_columns("latency", scale)),
            digits("Samples", lambda row: str(len(row.samples)) if row.samples else "–"),
            digits(f"95th percentile ({unit})", lambda row: scale.text(row.tail)),
            digits(f"Bound ({unit})", of_group(bound)),
            *(digits(title, lambda row, metric=metric: quantity(median(row.group, metric), "s"))
              for title, metric in (("Session", "session_time"), ("Bind", "bind_time"),
                                    ("Copy", "copy_time"))),
        ],
        title=f"Latency at batch {batch}", axis=f"latency of one Run ({unit}), less is better",
        name=f"latency-{name}", first="Lowest", unit=unit,
    )  # fmt: skip


def _throughput(context: Context, name: str, groups: list[Group], axis: str) -> Chart | None:
    """One chart over batch or threads, the other held at the value most points have."""
    other = "threads" if axis == "batch" else "batch"
    values: dict[int, set[int]] = defaultdict(set)
    for group in groups:
        values[_at(group, other)].add(_at(group, axis))
    if not values:
        return None
    held = max(values, key=lambda key: (len(values[key]), -key if other == "threads" else key))
    if len(values[held]) < 2:
        return None
    series: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for group in groups:
        if _at(group, other) == held and group.values("throughput"):
            key = (group.cell.get("runtime") or "", group.cell.get("exporter") or "")
            series[key].append(group)
    labels = group_labels([g for members in series.values() for g in members], always=(axis,))
    exporters = sorted({exporter for _, exporter in series})
    runtimes = sorted({runtime for runtime, _ in series})
    several = len([exporter for exporter in exporters if exporter]) > 1
    lines, items, rows = [], [], []
    for (runtime, exporter), members in sorted(series.items()):
        members.sort(key=lambda group: _at(group, axis))
        place = runtimes.index(runtime)
        shift = place + (exporters.index(exporter) if several else 0)
        color = context.styles.get(runtime).color
        style = Style(color, _SHAPES[shift % len(_SHAPES)], _DASHES[shift % len(_DASHES)])
        points = [(float(_at(g, axis)), median(g, "throughput") or 0.0) for g in members]
        scatter = [(float(_at(g, axis)), rate) for g in members for rate in g.values("throughput")]
        lines.append(Line(points=points, scatter=scatter, style=style))
        items.append((f"{runtime} · {exporter}" if several and exporter else runtime, style))
        rows += members
    fixed = count(held, "thread") if other == "threads" else f"batch {held}"
    ticks = sorted({x for line in lines for x, _ in line.points})
    return drawn(
        line_plot(
            lines, x_title=axis, y_title="samples/s", x_log=True, ticks=ticks[:: len(ticks) // 16 + 1],
            y_log=log_is_better([y for line in lines for _, y in line.points]),
        ),
        rows,
        [
            words("Point", lambda group: labels[group.cell]),
            digits(axis.capitalize(), lambda group: number(float(_at(group, axis)))),
            *metric_columns("throughput", scale_for([], "1"), unit="samples/s"),
        ],
        title=f"Throughput over {axis}, {fixed}", name=f"throughput-{axis}-{name}",
        alt=f"Samples per second over {axis} at {fixed}, a line per runtime.",
        legend=legend(items),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class _Conditions:
    """All right runs of one runtime."""

    runtime: str
    groups: list[Group]

    @property
    def agreement(self) -> float | None:
        """The least share of equal classes, or None when outputs were not compared."""
        return min((v for g in self.groups for v in g.values("top1_agreement")), default=None)

    def told(self, key: str) -> list[object]:
        """Return what the records' details have under a key."""
        records = (record for group in self.groups for record in group.ok)
        return [record.details[key] for record in records if key in record.details]

    def text(self, key: str) -> str:
        """Write the values that occur."""
        return clean(", ".join(sorted({str(value) for value in self.told(key)}))) or "–"


def _conditions(context: Context) -> list[Block]:
    """What each runtime ran with: version, options, why measuring stopped, agreement."""
    by_runtime: dict[str, list[Group]] = defaultdict(list)
    for group in context.of("infer"):
        if group.ok:
            by_runtime[group.cell.get("runtime") or "–"].append(group)

    def options(row: _Conditions) -> str:
        given = [told for told in row.told("session_options") if isinstance(told, dict)]
        # Threads are an axis of the cell.
        said = {f"{k}={v}" for told in given for k, v in told.items() if "thread" not in str(k)}
        return clean(", ".join(sorted(said))) or "–"

    def stopped(row: _Conditions) -> str:
        records = sum(len(group.ok) for group in row.groups)
        reasons = Counter(map(str, row.told("stop_reason")))
        if reasons.total() < records:
            reasons["unknown"] += records - reasons.total()
        return clean(", ".join(f"{why}: {amount}" for why, amount in sorted(reasons.items())))

    def difference(row: _Conditions) -> str:
        values = [value for group in row.groups for value in group.values("max_abs_difference")]
        return number(max(values)) if values else "–"

    def verdict(row: _Conditions) -> Chip:
        if row.agreement is None:
            return Chip("not compared", "warn")
        return Chip("right", "good") if row.agreement >= 1 else Chip("differs", "bad")

    rows = [_Conditions(runtime=name, groups=groups) for name, groups in sorted(by_runtime.items())]
    columns = [
        words("Runtime", lambda row: row.runtime),
        words("Version", lambda row: row.text("runtime_version")),
        words("Provider used", lambda row: row.text("provider_used")),
        words("Session options", options), words("Stopped by", stopped),
        digits("Least agreement", lambda row: percent(row.agreement, 1)),
        digits("Largest difference", difference), words("Output", verdict),
    ]  # fmt: skip
    return [table(rows, columns, caption="What the runtimes ran with, threads aside")]
