"""Section: runtimes beside each other, by latency, batch and threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from transect.analysis.bounds import run_bound
from transect.analysis.groups import Group, grouped
from transect.analysis.statistics import quantile
from transect.report.blocks import Chip, Heading, Lead, Part, digits, note, table, words
from transect.report.charts.chart import (
    MOST_DRAWN,
    MOST_PANELS,
    Point,
    Series,
    dot_chart,
    line_chart,
)
from transect.report.charts.plots import Dot
from transect.report.charts.theme import Style
from transect.report.columns import labelled, medians, metric_columns, ranked
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.findings.serving import by_provider, faithful_groups
from transect.report.text import clean, count, in_unit, scale_for, tenths
from transect.stages.infer.cell import InferCell

__all__ = ["runtimes_body"]

# A tail percentile needs samples in the tail: twenty beyond the 95th.
_TAIL_SAMPLES = 400
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_DASHES = ((), (6, 3), (2, 2), (9, 3, 2, 3))


def runtimes_body(context: Context) -> Iterator[Part]:
    """Draw latency distributions, and throughput over batch and threads, of right results only."""
    yield Lead(
        "Only the Run call is timed. Binding of inputs, copying of outputs and session creation "
        "are timed apart from it. In the latency charts the symbol is the median of the runs' "
        "medians, the thick line the middle half of all samples, the thin one the least sample to "
        "the 95th percentile, where 400 samples or more support one.",
        empty="No runtime was measured with a right result.",
    )
    ended = [group for group in context.of("infer") if group.ok]
    for workload in context.workloads("infer"):
        groups = faithful_groups(context, workload)
        for provider, own in by_provider(groups).items():
            yield Heading(f"{workload} on {provider}")
            yield from _charts(context, f"{workload}-{provider}", own)
        left = sum(group.cell.workload == workload for group in ended) - len(groups)
        if left:
            yield note(f"{workload}: {count(left, 'point')} left out: the output is not right.")
    if ended:
        yield _conditions(ended)


def _charts(context: Context, name: str, groups: list[Group[InferCell]]) -> Iterator[Part]:
    of_batch = grouped(groups, lambda group: group.cell.batch)
    for batch, same in sorted(of_batch.items())[:MOST_PANELS]:
        yield _latency(context, f"{name}-{batch}", batch, same)
    for axis in ("batch", "threads"):
        yield _throughput(context, name, groups, axis)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Latency:
    """A group with all its latency samples, where they are kept."""

    group: Group[InferCell]
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


def _latency(context: Context, name: str, batch: int, groups: list[Group[InferCell]]) -> Part:
    first = ranked(groups, "latency")
    label = labelled(first, "Point", always=("threads",))
    scale = scale_for([median(group, "latency") for group in first], "s")
    # Samples are read again from the records: only of what is drawn.
    rows = [
        _Latency(
            group=group,
            samples=[
                value for record in group.ok if place < MOST_DRAWN
                for value in context.originals.samples(record, "latency")
            ],
        )
        for place, group in enumerate(first)
    ]  # fmt: skip

    def dot(row: _Latency) -> Dot:
        summary, middle = row.group.summary("latency"), row.middle
        if summary is None:
            raise ValueError(f"{row.group.cell.id}: ranked by a latency that it lacks")
        ends = [end for end in (row.tail, middle and middle[1], summary.high) if end is not None]
        return Dot(
            label=str(label.entry(row)), value=summary.median / scale.factor,
            low=(min(row.samples) if row.samples else summary.low) / scale.factor,
            high=ends[0] / scale.factor,
            inner=(middle[0] / scale.factor, middle[1] / scale.factor) if middle else None,
            style=context.style(row.group), right=f"{scale.text(summary.median)} {scale.unit}",
        )  # fmt: skip

    def bound(row: _Latency) -> float | None:
        limit = run_bound(row.group, context.rates)
        return limit.time_s if limit else None

    return dot_chart(
        rows, dot,
        [
            label, *metric_columns("latency", scale),
            digits("Samples", lambda row: len(row.samples) or None),
            digits(f"95th percentile ({scale.unit})", lambda row: row.tail, scale.text),
            digits(f"Bound ({scale.unit})", bound, scale.text),
            medians("Session", "session_time", in_unit("s")),
            medians("Bind", "bind_time", in_unit("s")),
            medians("Copy", "copy_time", in_unit("s")),
        ],
        title=f"Latency at batch {batch}", axis=f"latency of one Run ({scale.unit}), less is better",
        name=f"latency-{name}", first="Lowest", unit=scale.unit,
    )  # fmt: skip


def _throughput(context: Context, name: str, groups: list[Group[InferCell]], axis: str) -> Part:
    """One chart over batch or threads, the other held at the value most points have."""

    def at(group: Group[InferCell], along: str) -> int:
        return group.cell.batch if along == "batch" else group.cell.threads

    other = "threads" if axis == "batch" else "batch"
    points = {(at(group, other), at(group, axis)) for group in groups}
    amounts = Counter(value for value, _ in points)
    held = max(amounts, key=lambda key: (amounts[key], -key if other == "threads" else key))
    if amounts[held] < 2:
        return None
    shown = [g for g in groups if at(g, other) == held and g.values("throughput")]
    shown.sort(key=lambda group: at(group, axis))
    alike = grouped(shown, lambda group: (group.cell.runtime, group.cell.exporter or ""))
    exporters = sorted({exporter for _, exporter in alike})
    runtimes = sorted({runtime for runtime, _ in alike})
    several = len([exporter for exporter in exporters if exporter]) > 1
    series = []
    for (runtime, exporter), members in sorted(alike.items()):
        shift = runtimes.index(runtime) + (exporters.index(exporter) if several else 0)
        color = context.styles.get(runtime).color
        points = [Point(x=at(group, axis), repeats=group.values("throughput")) for group in members]
        series.append(Series(
            name=f"{runtime} · {exporter}" if several and exporter else runtime, points=points,
            style=Style(color, _SHAPES[shift % len(_SHAPES)], _DASHES[shift % len(_DASHES)]),
        ))  # fmt: skip
    rows = [group for _, members in sorted(alike.items()) for group in members]
    fixed = count(held, "thread") if other == "threads" else f"batch {held}"
    return line_chart(
        series, rows,
        [
            labelled(rows, "Point", always=(axis,)),
            digits(axis.capitalize(), lambda group: at(group, axis)),
            *metric_columns("throughput", scale_for([], "1"), unit="samples/s"),
        ],
        title=f"Throughput over {axis}, {fixed}", x=axis, y="samples/s",
        name=f"throughput-{axis}-{name}", most=len(series), height=230,
        alt=f"Samples per second over {axis} at {fixed}, a line per runtime.",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class _Conditions:
    """All right runs of one runtime."""

    runtime: str
    groups: list[Group[InferCell]]

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


def _conditions(groups: list[Group[InferCell]]) -> Part:
    """What each runtime ran with: version, options, why measuring stopped, agreement."""

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

    def difference(row: _Conditions) -> float | None:
        values = [value for group in row.groups for value in group.values("max_abs_difference")]
        return max(values, default=None)

    def verdict(row: _Conditions) -> Chip:
        if row.agreement is None:
            return Chip("not compared", "warn")
        return Chip("right", "good") if row.agreement >= 1 else Chip("differs", "bad")

    by_runtime = grouped(groups, lambda group: group.cell.runtime)
    rows = [_Conditions(runtime=name, groups=own) for name, own in sorted(by_runtime.items())]
    columns = [
        words("Runtime", lambda row: row.runtime),
        words("Version", lambda row: row.text("runtime_version")),
        words("Provider used", lambda row: row.text("provider_used")),
        words("Session options", options), words("Stopped by", stopped),
        digits("Least agreement", lambda row: row.agreement, tenths),
        digits("Largest difference", difference), words("Output", verdict),
    ]  # fmt: skip
    return table(rows, columns, caption="What the runtimes ran with, threads aside")
