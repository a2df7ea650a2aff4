"""What a call costs per language, of models that compute nothing; what other session options than the equal ones do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.contrast import Contrast
from transect.analysis.groups import grouped
from transect.analysis.serving import (
    WHOLE,
    InferGroup,
    base_point,
    changed_settings,
    comparable,
    identity_size,
    takes_onnx,
)
from transect.report.engine.blocks import Heading, Part, digits, note, table, words
from transect.report.engine.charts.chart import Point, Series, line_chart
from transect.report.engine.columns import labelled, medians
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import verdict_chip
from transect.report.engine.finding import median
from transect.report.engine.text import clean, in_unit, scale_for, with_ends
from transect.report.topics.serving.facts import faithful_groups, measure_for
from transect.report.topics.serving.overhead import setting_words
from transect.report.topics.serving.series import RuntimeSeries


def _size(group: InferGroup) -> int:
    """Return how many numbers the model of a group hands on."""
    return identity_size(str(group.cell.workload)) or 0


def call_blocks(context: Context) -> Iterator[Part]:
    """Draw latency over the size of an identity model; what a call takes beyond that of C is a finding."""
    parts: dict[str, list[InferGroup]] = {}
    for workload in context.workloads("infer"):
        if identity_size(workload) is not None:
            for where, groups in comparable(faithful_groups(context, workload)).items():
                parts.setdefault(where, []).extend(base_point(filter(takes_onnx, groups)))
    if any(parts.values()):
        yield Heading("What a call costs")
        yield note(
            "A model that hands its input on computes nothing: what is left is the call, and the copies with it."
        )
    for where, groups in parts.items():
        groups.sort(key=_size)
        yield _chart(context, where, groups)
        if not any(pair.group in groups for pair in context.contrasts.of("overhead.call")):
            yield note(f"C was not measured on {where}: no call is set beside it.")


def _chart(context: Context, where: str, groups: Sequence[InferGroup]) -> Part:
    able = [group for group in groups if group.values("latency")]
    if len(set(map(_size, able))) < 2:
        return None
    measure = measure_for(able)
    scale = scale_for([median(group, measure.name) for group in able], "s")
    lines = RuntimeSeries(context, able)

    def place(group: InferGroup) -> Point:
        return Point(
            x=_size(group), about=group, repeats=[value / scale.factor for value in group.values(measure.name)]
        )

    series = [
        Series(name=name, style=lines.style(members[0]), points=list(map(place, members)))
        for name, members in grouped(able, lines.name).items()
    ]
    return line_chart(
        series,
        able,
        [
            labelled(able, "Runtime", always=("workload",)),
            digits("Numbers", _size),
            medians(f"Latency ({scale.unit})", "latency", scale),
            medians("End to end", WHOLE, in_unit("s")),
            *measure.columns,
        ],
        title=f"A call over the numbers that it hands on, on {where}",
        x="numbers (float32)",
        y=f"{measure.short} ({scale.unit}, log scale)",
        name=f"calls-{where}",
        most=len(series),
        y_log=True,
        notes=[measure.note],
    )


def option_blocks(context: Context) -> Iterator[Part]:
    """List runs with other session options than the equal ones, beside the same runtime with those."""
    pairs = grouped(context.contrasts.of("overhead.ffi-overhead"), lambda pair: str(pair.group.cell.workload))
    if pairs:
        yield Heading("Other session options")
    for workload, members in sorted(pairs.items()):
        members.sort(key=lambda pair: (str(pair.group.cell.get("runtime")), pair.group.cell.id))
        columns = [
            labelled(members, "Runtime and options", always=("threads", "batch")),
            words("Changed", _changed),
            medians("Latency", "latency", in_unit("s")),
            digits("Times equal", lambda pair: pair.ratio, with_ends),
            digits("Runs", lambda pair: pair.pairs),
            words("", verdict_chip),
        ]
        yield table(
            members, columns, caption=f"{workload}: other session options, beside the same runtime with equal ones"
        )


def _changed(pair: Contrast) -> str:
    differing = changed_settings(pair.group, pair.base)
    return "not told" if differing is None else clean(setting_words(differing)) or "nothing"
