"""Section: each training and inference cell below the roof of the machine it ran on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from transect.analysis.bounds import Bound, Rate
from transect.analysis.groups import Group, group_labels
from transect.analysis.network import communications
from transect.analysis.roofline import RooflinePoint, roofline_points
from transect.domain.cell import Cell
from transect.report.blocks import (
    Block,
    Body,
    Chart,
    Charts,
    Chip,
    Column,
    Prose,
    Table,
    digits,
    table,
    words,
)
from transect.report.charts.chart import MOST_PANELS, drawn
from transect.report.charts.plots import Line, line_plot
from transect.report.charts.theme import MUTED, Style, legend
from transect.report.context import Context
from transect.report.findings.serving import faithful_groups
from transect.report.text import Scale, clean, count, number, percent, quantity, scale_for

__all__ = ["roofline_body"]

_ROOF = Style(MUTED, "square", (5, 3))
_MOST_OPEN = 16
# Points and series of one chart.
_MOST_POINTS, _MOST_SERIES = 300, 24
_CLIP = 160
_STAGES = (("train", "Training", "step"), ("infer", "Inference", "run"))

_COUNTS = (
    "Operations and bytes are counted, not measured: from the ONNX graph for runtimes that execute "
    "one, else from the workload's layers, by the same rules. A multiply-add is two operations, any "
    "other addition, product, division, root, exponential or choice of the larger number is one; a "
    "product with the zeros of a padding is none, and a bias is where its sum begins. A training "
    "step: forward pass, loss, gradients of all weights and of those inputs that an earlier weight "
    "needs, and the optimiser's update with this workload's hyper-parameters; bytes for parameters, "
    "gradients and the optimiser's states read and written once each, inputs read, activations "
    "written and read. An inference run: one forward pass; bytes for weights and inputs read and "
    "outputs written once, activations staying in cache. Both are the least that the model needs by "
    "its definition: what a framework does beyond them shows as distance from the roof."
)


def roofline_body(context: Context) -> Body:
    """Draw one roofline per stage, number of threads and precision; list every point."""
    blocks: list[Block] = []
    charts: list[Chart] = []
    tables: list[Block] = []
    notes: list[Block] = []
    for stage, title, unit in _STAGES:
        points, left_out = roofline_points(_groups(context, stage), context.rates)
        points.sort(key=lambda point: (-point.share, point.group.cell.id))
        labels = _labels(points)
        panels: dict[tuple[int, str], list[RooflinePoint]] = defaultdict(list)
        for point in points:
            panels[point.threads, point.group.cell.precision].append(point)
        charts += [
            _chart(context, stage, title, key, panels[key], labels)
            for key in sorted(panels)[:MOST_PANELS]
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
    return Body(lead=lead, blocks=[*blocks, *notes])


def _groups(context: Context, stage: str) -> list[Group]:
    if stage == "train":
        return context.of("train")
    workloads = context.workloads("infer")
    return [group for name in workloads for group in faithful_groups(context, name)]


def _labels(points: Sequence[RooflinePoint]) -> dict[Cell, str]:
    groups = [point.group for point in points]
    trained = any(group.cell.stage == "train" for group in groups)
    return group_labels(groups, always=("ranks", "threads") if trained else ("threads",))


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
    series: dict[str, list[RooflinePoint]] = defaultdict(list)
    for point in points[:_MOST_POINTS]:
        cell = point.group.cell
        axes = ("framework", "strategy") if stage == "train" else ("runtime",)
        series[" · ".join(part for axis in axes if (part := cell.get(axis)))].append(point)
    shown = sorted(series.items())[:_MOST_SERIES]
    styles = {name: context.style(members[0].group) for name, members in shown}
    lines = [Line(points=roof, style=_ROOF, symbols=False)] + [
        Line(
            points=[(point.intensity, point.achieved / scale.factor) for point in members],
            style=styles[name], joined=False,
        )
        for name, members in shown
    ]  # fmt: skip
    best = points[0]
    said = f"{labels[best.group.cell]} reaches {percent(best.share)} of what {_limit(best)} allows"
    over = ", more than it should: the benchmarks or the counts are off" if best.share > 1 else ""
    where = f"{count(threads, 'thread')}, {precision}"
    cut = len(points) - sum(len(members) for _, members in shown)
    return drawn(
        line_plot(
            lines, x_title="intensity (FLOP/B)", y_title=scale.unit, x_log=True, y_log=True,
            height=260,
        ),
        points,
        [
            words("Cell", lambda point: labels[point.group.cell]),
            digits("Intensity (FLOP/B)", lambda point: number(point.intensity)),
            digits(f"Achieved ({scale.unit})", lambda point: scale.text(point.achieved)),
            digits(f"Allowed ({scale.unit})", lambda point: scale.text(point.roof)),
        ],
        title=f"{title} on {where}", name=f"roofline-{stage}-{threads}-{precision}",
        alt=f"Roofline of {title.lower()} on {where}: a slope of {quantity(bandwidth, 'B/s')} up to "
        f"{quantity(peak, 'FLOP/s')} at {number(ridge)} FLOP/B, and {count(len(points), 'cell')} "
        f"below it. Nearest to it: {said}.",
        legend=[*legend([("roof", _ROOF)], symbol=False), *legend(styles.items(), line=False)],
        notes=[
            f"Slope {quantity(bandwidth, 'B/s')} ({_source(bound.bandwidth)}), roof "
            f"{quantity(peak, 'FLOP/s')} ({_source(bound.flops)}). Nearest: {said}{over}.",
            *_warnings(context, bound),
            f"{count(cut, 'cell')} far from the roof are not drawn." if cut else "",
        ],
    )  # fmt: skip


def _source(rate: Rate) -> str:
    return clean(f"{rate.benchmark}, {rate.label}" if rate.label else rate.benchmark)


def _warnings(context: Context, bound: Bound) -> list[str]:
    """Repeat what the benchmarks behind a roof said against themselves."""
    cells = {bound.flops.cell_id, bound.bandwidth.cell_id}
    said: dict[str, None] = {}
    for value in context.benchmark_values:
        if value.valid and value.cell_id in cells:
            said |= dict.fromkeys(value.warnings)
    return [f"Warning: {' '.join(clean(warning).split())[:_CLIP]}." for warning in list(said)[:2]]


def _operations(values: Sequence[float]) -> Scale:
    middle = sorted(values)[len(values) // 2]
    for factor, unit in ((1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP")):
        if middle >= factor:
            return Scale(factor=factor, unit=unit)
    return Scale(factor=1.0, unit="FLOP")


def _table(
    context: Context, title: str, unit: str, points: list[RooflinePoint], labels: dict[Cell, str]
) -> Table:
    work = _operations([point.flops for point in points])
    rate = scale_for([point.achieved for point in points], "FLOP/s")
    groups = [point.group for point in points] if unit == "step" else []
    ratios = {row.group.cell: row.ratio for row in communications(groups, context.network_fits)}

    def of_network(point: RooflinePoint) -> str:
        ratio = ratios.get(point.group.cell)
        return percent(1 / ratio) if ratio else "–"

    columns: list[Column[RooflinePoint]] = [
        words("Cell", lambda point: labels[point.group.cell]),
        digits(f"Operations per {unit} ({work.unit})", lambda point: work.text(point.flops)),
        digits(f"Bytes per {unit}", lambda point: quantity(point.bytes, "B")),
        digits("Intensity (FLOP/B)", lambda point: number(point.intensity)),
        digits(f"Time per {unit}", lambda point: quantity(point.time.median, "s")),
        digits(f"Achieved ({rate.unit})", lambda point: rate.text(point.achieved)),
        digits("Of the roof", lambda point: percent(point.share)), words("Roof set by", _limit),
    ]  # fmt: skip
    if any(ratios.values()):
        columns.append(digits("Communication, of its bound", of_network))
    columns.append(words("", _mark))
    caption = f"{title}: share of the roof, highest first"
    return table(points, columns, caption=caption, fold_above=_MOST_OPEN)


def _mark(point: RooflinePoint) -> Chip | None:
    if point.share > 1:
        return Chip("above the roof", "warn")
    return Chip("disturbed", "warn") if point.group.disturbed else None
