"""What a call costs per language: models that compute nothing, over the numbers they hand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import grouped
from transect.analysis.serving import (
    WHOLE,
    Beyond,
    InferGroup,
    base_point,
    beyond,
    comparable,
    identity_size,
    run_includes,
    takes_onnx,
)
from transect.report.engine.blocks import Chip, Heading, Part, digits, note, table, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.columns import labelled, medians, undecided
from transect.report.engine.context import Context
from transect.report.engine.finding import median
from transect.report.engine.text import in_unit, quantity, scale_for
from transect.report.topics.serving.findings import faithful_groups
from transect.report.topics.serving.measure import measure_for
from transect.report.topics.serving.series import RuntimeSeries
from transect.stats.comparisons import Verdict


def call_blocks(context: Context) -> Iterator[Part]:
    """Draw latency over the size of an identity model, and list each call beyond that of C."""
    sizes = [name for name in context.workloads("infer") if identity_size(name) is not None]
    parts: dict[str, list[InferGroup]] = {}
    for workload in sorted(sizes, key=_size):
        for where, groups in comparable(faithful_groups(context, workload)).items():
            parts.setdefault(where, []).extend(base_point(filter(takes_onnx, groups)))
    if any(parts.values()):
        yield Heading("What a call costs")
        yield note(
            "A model that hands its input on computes nothing: what is left is the call, and the "
            "copies that come with it. Beyond C is what the ratio of one side's runs to those of C "
            "comes to; of whole calls, end to end, where languages bind or copy inside of "
            "Run."
        )
    for where, groups in parts.items():
        yield _chart(context, where, groups)
        yield from _table(context, where, groups)


def _size(workload: str) -> int:
    return identity_size(workload) or 0


def _chart(context: Context, where: str, groups: Sequence[InferGroup]) -> Part:
    able = [group for group in groups if group.values("latency")]
    if len({group.cell.workload for group in able}) < 2:
        return None
    measure = measure_for(able)
    scale = scale_for([median(group, measure.name) for group in able], "s")
    lines = RuntimeSeries(context, able)
    series = [
        Series(
            name=lines.name(members[0]),
            style=lines.style(members[0]),
            points=[
                Point(
                    x=_size(group.cell.workload),
                    about=group,
                    repeats=[value / scale.factor for value in group.values(measure.name)],
                )
                for group in members
            ],
        )
        for members in grouped(able, lines.name).values()
    ]
    return line_chart(
        series,
        able,
        [
            labelled(able, "Runtime", always=("workload",)),
            digits("Numbers", lambda group: _size(group.cell.workload)),
            medians(f"Latency ({scale.unit})", "latency", scale),
            medians("End to end", "end_to_end_time", in_unit("s")),
            *measure.columns,
        ],
        title=f"A call over the numbers that it hands on, on {where}",
        x="numbers (float32)",
        y=f"{measure.short} ({scale.unit}, log scale)",
        name=f"calls-{where}",
        most=len(series),
        y_log=True,
        notes=[measure.note],
        alt=f"Latency of a model that computes nothing over its size, on {where}, a line per runtime.",
    )


def _table(context: Context, where: str, groups: Sequence[InferGroup]) -> Iterator[Part]:
    rows = [
        row
        for members in grouped(groups, lambda group: group.cell.workload).values()
        for alike in grouped(members, lambda group: group.cell.exporter).values()
        for row in beyond(alike, context.floors)
    ]
    write = in_unit("s")
    columns = [
        labelled(rows, "Runtime", always=("workload",)),
        medians("Latency", "latency", write),
        words("Compared by", lambda row: "end to end" if row.measure == WHOLE else "Run"),
        digits("Beyond C", lambda row: row.excess and row.excess.value, write),
        digits("From – to", _ends),
        medians("End to end", "end_to_end_time", write),
        digits("Runs", lambda row: len(row.group.values("latency"))),
        words("Run includes", lambda row: ", ".join(run_includes(row.group))),
        words("", _mark),
    ]
    if rows:
        yield table(rows, columns, caption=f"Calls beside those of C, on {where}")
    elif groups:
        yield note(f"C was not measured on {where}: no call is set beside it.")


def _ends(row: Beyond) -> str | None:
    if row.excess is None:
        return None
    return f"{quantity(row.excess.low, 's')} – {quantity(row.excess.high, 's')}"


def _mark(row: Beyond) -> Chip | None:
    if row.comparison is None:
        return Chip("the base")
    return undecided(row.comparison) if row.comparison.verdict is Verdict.SAME else None
