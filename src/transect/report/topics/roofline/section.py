"""Section: each training and inference cell below the roof of the machine it ran on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transect.analysis.bounds import Bound
from transect.analysis.groups import Group, grouped
from transect.analysis.network import communications
from transect.domain.cell import Cell
from transect.report.engine.blocks import Chip, Column, Explained, Lead, Mark, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, drawn
from transect.report.engine.charts.inks import MUTED
from transect.report.engine.charts.marks import Line
from transect.report.engine.charts.plots import line_plot
from transect.report.engine.charts.theme import Style, legend
from transect.report.engine.columns import labelled
from transect.report.engine.context import Context
from transect.report.engine.text import clipped, count, in_unit, percent, quantity, scale_for
from transect.report.topics.roofline.facts import RooflinePoint, roofline_points
from transect.report.topics.serving.facts import faithful_groups

_ROOF = Style(MUTED, "square", (5, 3))
# Points of one chart.
_MAX_POINTS = 300
_CLIP = 160
_STAGES = (("train", "Training", "step"), ("infer", "Inference", "run"))

_READING = (
    "The roof at a cell's intensity is the smaller of the peak FLOP/s and intensity times memory bandwidth (Williams, Waterman "
    "and Patterson, 2009), both the best that benchmarks reached here with as many threads as the cell's ranks use on a node; of a "
    "cell that moves no more than the cache holds it is the peak. "
    "Operations and bytes are counted, not measured, from the ONNX graph for runtimes that execute one, else from the "
    "workload's layers: the least that the model needs by its definition. What a framework does beyond that shows as distance "
    "from the roof. A multiply-add is two operations. A training step: forward pass, loss, gradients and the optimiser's "
    "update; an inference run: one forward pass, with activations staying in cache."
)


def roofline_body(context: Context) -> Iterator[Part]:
    """Draw one roofline per stage, number of threads and precision; list every point."""
    found = {stage: roofline_points(_groups(context, stage), context.rates) for stage, _, _ in _STAGES}
    shares = [point.share for points, _ in found.values() for point in points]
    if not shares:
        return
    yield Lead(
        f"The nearest of {count(len(shares), 'cell')} reaches {percent(max(shares))} of what arithmetic and memory allow here."
    )
    for stage, title, unit in _STAGES:
        points, left_out = found[stage]
        points.sort(key=lambda point: (-point.share, point.group.cell.id))
        panels = grouped(points, lambda point: (point.threads, point.group.cell.precision))
        columns = _columns(context, unit, points) if points else []
        shown = [key for key in sorted(panels) if len(panels[key]) > 1][:MAX_PANELS]
        for key in shown:
            yield _chart(context, f"{title} on {count(key[0], 'thread')}, {key[1]}", panels[key], columns)
        if further := [point for key in sorted(panels) if key not in shown for point in panels[key]]:
            yield table(further, columns, caption=f"{title}: share of the roof{' of those not drawn' if shown else ''}")
        if left_out:
            why = ", ".join(f"{amount} {why}" for why, amount in left_out.items())
            yield note(f"{title}: {count(sum(left_out.values()), 'cell')} left out: {why}.")
    yield Explained(_READING)


def _groups(context: Context, stage: str) -> list[Group]:
    if stage == "train":
        return context.of("train")
    workloads = context.workloads("infer")
    return [group for name in workloads for group in faithful_groups(context, name)]


def _series_name(cell: Cell) -> str:
    names = (cell.get("framework"), cell.get("strategy"), cell.get("runtime"))
    return " · ".join(filter(None, names))


def _limit(point: RooflinePoint) -> str:
    return "peak FLOP/s" if point.bound.kind == "arithmetic" else point.bound.kind


def _chart(
    context: Context, where: str, points: Sequence[RooflinePoint], columns: Sequence[Column[RooflinePoint]]
) -> Part:
    bound = points[0].bound
    peak, bandwidth = bound.flops.value, bound.bandwidth.value
    scale = scale_for([peak], "FLOP/s")
    ridge = peak / bandwidth
    low = min(ridge, *(point.intensity for point in points)) / 2
    high = max(ridge, *(point.intensity for point in points)) * 2
    roof = [(x, min(peak, x * bandwidth) / scale.factor) for x in (low, ridge, high)]
    shown = grouped(points[:_MAX_POINTS], lambda point: _series_name(point.group.cell))
    styles = {name: context.style(members[0].group) for name, members in sorted(shown.items())}

    def mark(point: RooflinePoint) -> Mark:
        return Mark(
            label=str(columns[0].entry(point)),
            about=point,
            at=point.intensity,
            what="median",
            value=point.achieved / scale.factor,
            ends=point.time.word,
            low=point.flops / point.time.high / scale.factor,
            high=point.flops / point.time.low / scale.factor if point.time.low else None,
            count=point.time.count,
        )

    lines = [Line(points=roof, style=_ROOF, symbols=False, name="roof")] + [
        Line(
            points=[(point.intensity, point.achieved / scale.factor) for point in shown[name]],
            style=style,
            joined=False,
            name=name,
            marks=[mark(point) for point in shown[name]],
        )
        for name, style in styles.items()
    ]
    best = points[0]
    nearest = f"{columns[0].entry(best)} reaches {percent(best.share)} of what {_limit(best)} allows"
    sides = [
        f"{side} {quantity(rate.value, unit)} ({clipped(', '.join(filter(None, (rate.benchmark, rate.label))), _CLIP)})"
        for side, rate, unit in (("Slope", bound.bandwidth, "B/s"), ("roof", bound.flops, "FLOP/s"))
    ]
    return drawn(
        line_plot(lines, x_title="intensity (FLOP/B)", y_title=scale.unit, x_log=True, y_log=True, height=260),
        points,
        columns,
        title=f"{where}: {nearest}",
        name=f"roofline-{best.group.cell.stage}-{best.threads}-{best.group.cell.precision}",
        legend=[*legend([("roof", _ROOF)], symbol=False), *legend(styles.items(), line=False)],
        notes=[
            f"{', '.join(sides)}.",
            *_warnings(context, bound),
            "More than 100 %: the benchmarks or the counts are off." if best.share > 1 else "",
            f"A point above the slope moves no more than the cache of {quantity(bound.bandwidth.cache_bytes, 'B')} holds, which the "
            "memory does not bound: it is held to the roof alone."
            if any(point.achieved > point.intensity * bandwidth for point in points) and best.share <= 1
            else "",
            f"{count(len(points) - _MAX_POINTS, 'cell')} far from the roof are not drawn."
            if points[_MAX_POINTS:]
            else "",
        ],
    )


def _warnings(context: Context, bound: Bound) -> list[str]:
    """Repeat what the benchmarks behind a roof said against themselves."""
    cells = {bound.flops.cell_id, bound.bandwidth.cell_id}
    behind = (value for value in context.benchmark_values if value.valid and value.cell_id in cells)
    warnings = dict.fromkeys(warning for value in behind for warning in value.warnings)
    return [f"Warning: {clipped(warning, _CLIP)}." for warning in list(warnings)[:2]]


def _columns(context: Context, unit: str, points: list[RooflinePoint]) -> list[Column[RooflinePoint]]:
    work = scale_for([point.flops for point in points], "FLOP")
    rate = scale_for([point.achieved for point in points], "FLOP/s")
    groups: list[Group[Any]] = [point.group for point in points]
    trained = unit == "step"
    always = ("ranks", "threads") if trained else ("threads",)
    beside = communications(groups, context.network_fits) if trained else []
    ratios: dict[Cell, float] = {row.group.cell: row.ratio for row in beside if row.ratio}

    def of_network(point: RooflinePoint) -> float | None:
        ratio = ratios.get(point.group.cell)
        return 1 / ratio if ratio else None

    columns: list[Column[RooflinePoint]] = [
        labelled(points, always=always),
        digits(f"Operations per {unit} ({work.unit})", lambda point: point.flops, work),
        digits(f"Bytes per {unit}", lambda point: point.bytes, in_unit("B")),
        digits("Intensity (FLOP/B)", lambda point: point.intensity),
        digits(f"Time per {unit}", lambda point: point.time.median, in_unit("s")),
        digits(f"Achieved ({rate.unit})", lambda point: point.achieved, rate),
        digits("Of the roof", lambda point: point.share, percent),
        words("Roof set by", _limit),
        digits(f"Allowed ({rate.unit})", lambda point: point.roof, rate),
    ]
    if ratios:
        columns.append(digits("Communication, of its bound", of_network, percent))
    return [*columns, words("", _mark)]


def _mark(point: RooflinePoint) -> Chip | None:
    if point.share > 1:
        return Chip("above the roof", "warn")
    return Chip("disturbed", "warn") if point.group.disturbed else None
