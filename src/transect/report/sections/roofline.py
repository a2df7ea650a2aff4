"""Section: each training and inference cell below the roof of the machine it ran on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from transect.analysis.bounds import Bound, Rate
from transect.analysis.groups import group_labels
from transect.analysis.hardware import benchmark_values
from transect.analysis.network import communications, network_fits
from transect.analysis.roofline import RooflinePoint, roofline_points
from transect.domain.cell import Cell
from transect.report.blocks import Block, Chart, Charts, Chip, Column, Prose, Section, Table, Value
from transect.report.charts.plots import Line, line_plot
from transect.report.charts.theme import MUTED, Style, legend, render
from transect.report.context import Context
from transect.report.findings.serving import faithful_groups
from transect.report.text import Scale, clean, count, number, percent, quantity, scale_for

__all__ = ["roofline_section"]

_ROOF = Style(MUTED, "square", (5, 3))
_MOST_ROWS = 16
_CLIP = 160
_STAGES = (("train", "Training", "step"), ("infer", "Inference", "run"))

_COUNTS = (
    "Operations and bytes are counted, not measured: from the ONNX graph for runtimes that execute "
    "one, else from the workload's layers, by the same rules. Forward pass: two operations per use of a weight, one per bias and per element "
    "that an activation or a pooling reads. A training step: three forward passes and four "
    "operations per parameter for SGD with momentum; bytes for parameters, gradients and momentum "
    "read and written once each, inputs read, activations written and read. An inference run: one "
    "forward pass; bytes for weights and inputs read and outputs written once, activations "
    "staying in cache. Both are the least that the model needs: what a framework does beyond them "
    "shows as distance from the roof."
)


def roofline_section(context: Context) -> Section:
    """Draw one roofline per stage, number of threads and precision; list every point."""
    blocks: list[Block] = []
    charts: list[Chart] = []
    tables: list[Block] = []
    notes: list[Block] = []
    for stage, title, unit in _STAGES:
        groups = context.of("train") if stage == "train" else [
            group for name in context.workloads("infer") for group in faithful_groups(context, name)
        ]  # fmt: skip
        points, left_out = roofline_points(groups, context.rates)
        labels = _labels(points)
        panels: dict[tuple[int, str], list[RooflinePoint]] = defaultdict(list)
        for point in points:
            panels[point.threads, point.group.cell.precision].append(point)
        charts += [
            _chart(context, stage, title, key, panels[key], labels) for key in sorted(panels)
        ]
        if points:
            tables.append(_table(context, title, unit, points, labels))
        if left_out:
            parts = [f"{amount} {why}" for why, amount in left_out.items()]
            text = f"{title}: {count(sum(left_out.values()), 'cell')} left out: {', '.join(parts)}."
            notes.append(Prose(text, quiet=True))
    if charts:
        blocks = [Charts(items=charts), *tables, Prose(_COUNTS, quiet=True)]
    else:
        blocks.append(Prose("No cell has both a count of operations and benchmarks of arithmetic "
                            "and memory with as many threads: there is no roof.", quiet=True))  # fmt: skip
    lead = (
        "The roof at a cell's intensity is the smaller of the peak FLOP/s and intensity times "
        "memory bandwidth (Williams, Waterman and Patterson, 2009), both the best that benchmarks "
        "reached here with as many threads as the cell's ranks use on a node. A cell's FLOP/s are "
        "its operations over the median time, on one node."
    )
    return Section(id="roofline", title="Roofline", lead=lead, blocks=[*blocks, *notes])


def _labels(points: Sequence[RooflinePoint]) -> dict[Cell, str]:
    groups = [point.group for point in points]
    trained = any(group.cell.stage == "train" for group in groups)
    labels = group_labels(groups, always=("ranks", "threads") if trained else ("threads",))
    if len({group.cell.workload for group in groups}) < 2:
        return labels
    return {cell: f"{cell.workload} · {label}" for cell, label in labels.items()}


def _limit(point: RooflinePoint) -> str:
    return "peak FLOP/s" if point.bound.kind == "arithmetic" else point.bound.kind


def _chart(
    context: Context, stage: str, title: str, key: tuple[int, str],
    points: list[RooflinePoint], labels: dict[Cell, str],
) -> Chart:  # fmt: skip
    threads, precision = key
    bound = points[0].bound
    peak, bandwidth = bound.flops.value, bound.bandwidth.value
    scale = scale_for([peak], "FLOP/s")
    ridge = peak / bandwidth
    low = min(ridge, *(point.intensity for point in points)) / 2
    high = max(ridge, *(point.intensity for point in points)) * 2
    roof = [(x, min(peak, x * bandwidth) / scale.factor) for x in (low, ridge, high)]
    lines = [Line(points=roof, style=_ROOF, symbols=False)]
    items = []
    series: dict[str, list[RooflinePoint]] = defaultdict(list)
    for point in points:
        cell = point.group.cell
        parts = (cell.framework, cell.strategy) if stage == "train" else (cell.runtime,)
        series[" · ".join(part for part in parts if part)].append(point)
    for name, some in sorted(series.items()):
        style = context.style(some[0].group)
        at = [(point.intensity, point.achieved / scale.factor) for point in some]
        lines.append(Line(points=at, style=style, joined=False))
        items.append((name, style))
    drawing = line_plot(
        lines, x_title="intensity (FLOP/B)", y_title=scale.unit, x_log=True, y_log=True, height=260
    )
    best = max(points, key=lambda point: (point.share, point.group.cell.id))
    said = f"{labels[best.group.cell]} reaches {percent(best.share)} of what {_limit(best)} allows"
    over = ", more than it should: the benchmarks or the counts are off" if best.share > 1 else ""
    where = f"{count(threads, 'thread')}, {precision}"
    rows: list[list[Value]] = [
        [labels[p.group.cell], number(p.intensity), number(p.achieved / scale.factor),
         number(p.roof / scale.factor)] for p in points
    ]  # fmt: skip
    return Chart(
        title=f"{title} on {where}",
        svg=render(drawing, name=f"roofline-{stage}-{threads}-{precision}",
                   alt_text=f"Roofline of {title.lower()} on {where}: a slope of "
                   f"{quantity(bandwidth, 'B/s')} up to {quantity(peak, 'FLOP/s')} at "
                   f"{number(ridge)} FLOP/B, and {count(len(points), 'cell')} below it. Nearest to "
                   f"it: {said}."),
        alt="FLOP/s over arithmetic intensity, below the roof.",
        legend=[*legend([("roof", _ROOF)], symbol=False), *legend(items, line=False)],
        note=f"Slope {quantity(bandwidth, 'B/s')} ({_source(bound.bandwidth)}), roof "
        f"{quantity(peak, 'FLOP/s')} ({_source(bound.flops)}). Nearest: {said}{over}."
        f"{_warnings(context, bound)}",
        table=Table(
            columns=[Column("Cell"), Column("Intensity (FLOP/B)", numeric=True),
                     Column(f"Achieved ({scale.unit})", numeric=True),
                     Column(f"Allowed ({scale.unit})", numeric=True)],
            rows=rows, folded="Numbers",
        ),
    )  # fmt: skip


def _source(rate: Rate) -> str:
    return clean(f"{rate.benchmark}, {rate.label}" if rate.label else rate.benchmark)


def _warnings(context: Context, bound: Bound) -> str:
    """Repeat what the benchmarks behind a roof said against themselves."""
    cells = {bound.flops.cell_id, bound.bandwidth.cell_id}
    found: dict[str, None] = {}
    for value in benchmark_values(r for r in context.records if r.cell_id in cells):
        found |= dict.fromkeys(value.warnings if value.valid else ())
    return "".join(f" Warning: {' '.join(clean(one).split())[:_CLIP]}." for one in list(found)[:2])


def _operations(values: Sequence[float]) -> Scale:
    middle = sorted(values)[len(values) // 2]
    for factor, unit in ((1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP")):
        if middle >= factor:
            return Scale(factor=factor, unit=unit)
    return Scale(factor=1.0, unit="FLOP")


def _table(context: Context, title: str, unit: str, points: list[RooflinePoint],
           labels: dict[Cell, str]) -> Table:  # fmt: skip
    work = _operations([point.flops for point in points])
    rate = scale_for([point.achieved for point in points], "FLOP/s")
    network = {
        one.group.cell: one.ratio
        for one in communications([point.group for point in points], network_fits(context.records))
    } if unit == "step" else {}  # fmt: skip
    talks = any(ratio for ratio in network.values())
    rows: list[list[Value]] = []
    for point in sorted(points, key=lambda one: (-one.share, one.group.cell.id)):
        ratio = network.get(point.group.cell)
        rows.append([
            labels[point.group.cell], work.text(point.flops), quantity(point.bytes, "B"),
            number(point.intensity), quantity(point.time.median, "s"), rate.text(point.achieved),
            percent(point.share), _limit(point),
            *([percent(1 / ratio) if ratio else "–"] if talks else []), _mark(point),
        ])  # fmt: skip
    columns = [
        Column("Cell"), Column(f"Operations per {unit} ({work.unit})", numeric=True),
        Column(f"Bytes per {unit}", numeric=True), Column("Intensity (FLOP/B)", numeric=True),
        Column(f"Time per {unit}", numeric=True), Column(f"Achieved ({rate.unit})", numeric=True),
        Column("Of the roof", numeric=True), Column("Roof set by"),
        *([Column("Communication, of its bound", numeric=True)] if talks else []), Column(""),
    ]  # fmt: skip
    caption = f"{title}: share of the roof, highest first"
    long = len(rows) > _MOST_ROWS
    return Table(
        columns=columns, rows=rows, caption="" if long else caption, folded=caption if long else ""
    )


def _mark(point: RooflinePoint) -> Chip | None:
    if point.share > 1:
        return Chip("above the roof", "warn")
    return Chip("disturbed", "warn") if point.group.disturbed else None
