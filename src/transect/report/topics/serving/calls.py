"""What a call costs per language: models that compute nothing, over the numbers they hand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import grouped
from transect.analysis.serving import WHOLE, InferGroup, base_point, comparable, identity_size, takes_onnx
from transect.report.engine.blocks import Heading, Part, digits, note, table, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.columns import labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import verdict_chip
from transect.report.engine.finding import median
from transect.report.engine.text import in_unit, scale_for, with_ends
from transect.report.topics.serving.facts import faithful_groups, measure_for
from transect.report.topics.serving.overhead import excess
from transect.report.topics.serving.series import RuntimeSeries


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
            "A model that hands its input on computes nothing: what is left is the call, and the copies with it."
        )
    for where, groups in parts.items():
        yield _chart(context, where, groups)
        yield _table(context, where, groups)


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


def _table(context: Context, where: str, groups: Sequence[InferGroup]) -> Part:
    pairs = [pair for pair in context.contrasts.of("overhead.call") if pair.group in groups]
    pairs.sort(key=lambda pair: (_size(str(pair.group.cell.workload)), pair.ratio.value, pair.group.cell.id))
    if not pairs:
        return note(f"C was not measured on {where}: no call is set beside it.")
    write = in_unit("s")
    columns = [
        labelled(pairs, "Runtime", always=("workload",)),
        words("Compared by", lambda pair: "end to end" if pair.metric == WHOLE else "Run"),
        digits("Beyond C", lambda pair: with_ends(excess(pair), write)),
        digits("Runs", lambda pair: pair.pairs),
        words("", verdict_chip),
    ]
    return table(pairs, columns, caption=f"Calls beside those of C, on {where}")
