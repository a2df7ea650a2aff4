"""Loss over steps beside the reference, and the deviation as a share of the tolerance."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.groups import Group, group_labels
from transect.domain.cell import Cell
from transect.domain.record import Record
from transect.report.blocks import Chart, Column, LegendItem, Table
from transect.report.charts.plots import Line, line_plot, log_is_better
from transect.report.charts.theme import INK, Style, legend, render
from transect.report.context import Context
from transect.report.text import number

__all__ = ["loss_charts", "thin"]

_POINTS = 80
_CURVES = 12

Curves = list[tuple[Group, Record, list[float], list[float], list[float]]]


def thin(values: Sequence[float], points: int = _POINTS) -> list[tuple[float, float]]:
    """Keep every k-th value and the last, as (step from 1, value)."""
    stride = max(1, -(-len(values) // points))
    kept = [(float(i + 1), values[i]) for i in range(0, len(values), stride)]
    last = float(len(values))
    return kept if not kept or kept[-1][0] == last else [*kept, (last, values[-1])]


def _peaks(values: Sequence[float], points: int = _POINTS) -> list[tuple[float, float]]:
    """Keep the largest value of each k steps, so that no excess is thinned away."""
    stride = max(1, -(-len(values) // points))
    return [(float(i + 1), max(values[i : i + stride])) for i in range(0, len(values), stride)]


def loss_charts(context: Context, workload: str, groups: list[Group]) -> list[Chart]:
    """Draw the first repeat of each group that recorded its loss; empty when none did."""
    curves: Curves = []
    for group in groups:
        record = group.ok[0]
        loss, reference, tolerance = (
            context.samples.get(record, name)
            for name in ("loss", "reference_loss", "loss_tolerance")
        )
        if loss:
            curves.append((group, record, loss, reference, tolerance))
    if not curves:
        return []
    every = len(curves)
    # All should coincide: those that deviate most say whether they do.
    curves = sorted(curves, key=_worst, reverse=True)[:_CURVES]
    labels = group_labels(groups, always=("ranks",))
    items = [_series(context, curves, labels)]
    return [
        chart
        for chart in (
            _loss(context, workload, curves, labels, items[0], every),
            _deviation(context, workload, curves, labels, items[0], every),
        )
        if chart is not None
    ]


def _worst(curve: tuple[Group, Record, list[float], list[float], list[float]]) -> tuple[float, str]:
    group = curve[0]
    ratios = [value for name in ("equality_ratio", "weights_equality_ratio")
              for value in group.values(name)]  # fmt: skip
    return max(ratios, default=0.0), group.cell.id


def _drawn(curves: Curves, every: int) -> str:
    if len(curves) == every:
        return ""
    return f" The {len(curves)} of {every} cells that deviate most."


def _series(context: Context, curves: Curves, labels: dict[Cell, str]) -> list[LegendItem]:
    seen: dict[str, Style] = {}
    several = len({group.cell.network for group, *_ in curves}) > 1
    for group, *_ in curves:
        parts = [group.cell.framework, group.cell.strategy, group.cell.network if several else None]
        name = " · ".join(part for part in parts if part)
        seen.setdefault(name, context.style(group))
    return legend(seen.items(), symbol=False)


def _loss(context: Context, workload: str, curves: Curves, labels: dict[Cell, str],
          items: list[LegendItem], every: int) -> Chart:  # fmt: skip
    lines = [
        Line(points=thin(loss), style=context.style(group), symbols=False, width=1.4)
        for group, _, loss, _, _ in curves
    ]
    # One per batch, rule and start: cells of another kind have another path to follow.
    references = {tuple(curve[3]): None for curve in curves if curve[3]}
    if references:
        style = Style(INK, "circle", (3, 4))
        lines += [
            Line(points=thin(reference), style=style, symbols=False, width=2.2)
            for reference in references
        ]
        items = [*items, *legend([("reference", style)], symbol=False)]
    rows = []
    for group, _, loss, expected, _ in curves:
        middle = len(loss) // 2
        rows.append([
            labels[group.cell], str(len(loss)), number(loss[0]), number(loss[middle]),
            number(loss[-1]), number(expected[-1]) if expected else "–",
        ])  # fmt: skip
    columns = [
        Column("Cell, first repeat"), Column("Steps", numeric=True),
        Column("First loss", numeric=True), Column("Middle", numeric=True),
        Column("Last loss", numeric=True), Column("Reference, last", numeric=True),
    ]  # fmt: skip
    values = [y for line in lines for _, y in line.points]
    drawing = line_plot(
        lines, x_title="step", y_title="training loss", y_log=log_is_better(values, 50)
    )
    return Chart(
        title="Loss beside the reference",
        svg=render(drawing, name=f"loss-{workload}",
                   alt_text=f"{workload}: training loss over steps of {len(curves)} cells, with "
                   "the reference as a dashed line."),
        alt="Training loss over steps.",
        note=f"First repeat of each cell, at most {_POINTS} points drawn per line. Lines that "
        "coincide with a reference are the aim." + _drawn(curves, every),
        legend=items,
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip


def _deviation(context: Context, workload: str, curves: Curves, labels: dict[Cell, str],
               items: list[LegendItem], every: int) -> Chart | None:  # fmt: skip
    lines, rows = [], []
    for group, _, loss, reference, tolerance in curves:
        # The reference may check the first steps only.
        if not 0 < len(reference) == len(tolerance) <= len(loss):
            continue
        loss = loss[: len(reference)]
        ratios = [
            abs(a - b) / t if t > 0 else 0.0
            for a, b, t in zip(loss, reference, tolerance, strict=True)
        ]
        lines.append(
            Line(points=_peaks(ratios), style=context.style(group), symbols=False, width=1.4)
        )
        worst = max(range(len(ratios)), key=ratios.__getitem__)
        rows.append([
            labels[group.cell], number(ratios[worst]), str(worst + 1),
            number(abs(loss[worst] - reference[worst])), number(tolerance[worst]),
        ])  # fmt: skip
    if not lines:
        return None
    columns = [
        Column("Cell, first repeat"), Column("Largest share", numeric=True),
        Column("At step", numeric=True), Column("Deviation", numeric=True),
        Column("Tolerance", numeric=True),
    ]  # fmt: skip
    drawing = line_plot(
        lines, x_title="step", y_title="deviation / tolerance", y_log=True, rule=1.0
    )
    return Chart(
        title="Deviation from the reference",
        svg=render(drawing, name=f"deviation-{workload}",
                   alt_text=f"{workload}: deviation of the loss as a share of its tolerance over "
                   "steps; below the dashed line at 1 is within tolerance."),
        alt="Deviation over tolerance per step.",
        note="Below the dashed line is within tolerance. Each point is the largest of its steps."
        + _drawn(curves, every),
        legend=items,
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip
