"""Throughput over ranks, and the efficiencies with their bases."""

from __future__ import annotations

from collections import defaultdict

from transect.analysis.bounds import step_bound
from transect.analysis.groups import Group, group_labels
from transect.analysis.scaling import METRIC, efficiencies
from transect.report.blocks import Block, Chart, Chip, Column, Table
from transect.report.charts.plots import Line, line_plot, log_is_better
from transect.report.charts.theme import MUTED, Style, legend, render
from transect.report.context import Context
from transect.report.sections.throughput import accuracy_text
from transect.report.text import number, percent

__all__ = ["scaling_blocks"]


def scaling_blocks(
    context: Context, workload: str, groups: list[Group]
) -> tuple[list[Chart], list[Block]]:
    """Return the chart over ranks and the table of efficiencies; empty with one rank count."""
    found = [group for group in groups if group.values(METRIC)]
    if len({group.cell.ranks for group in found}) < 2:
        return [], []
    return [_chart(context, workload, found)], _efficiency_table(context, workload, groups)


def _chart(context: Context, workload: str, groups: list[Group]) -> Chart:
    series: dict[tuple[str, ...], list[Group]] = defaultdict(list)
    # Ranks are added on one node or node by node: a line never changes from one to the other.
    several_nodes = any(group.cell.nodes > 1 for group in groups)
    for group in groups:
        cell = group.cell
        key = (cell.framework or "", cell.strategy or "", str(cell.threads), cell.precision,
               str(cell.batch), cell.device, cell.network or "",
               str(cell.ranks_per_node) if several_nodes else "")  # fmt: skip
        series[key].append(group)
    lines, legends, rows = [], [], []
    labels = group_labels(groups, always=("ranks",))
    for members in series.values():
        members.sort(key=lambda group: group.cell.ranks)
        style = context.style(members[0])
        legends.append((_series_name(members[0], groups), style))
        claimed = [group for group in members if not group.over_subscribed]
        shown = [group for group in members if group.over_subscribed]
        for some, hollow in ((claimed, False), (shown, True)):
            if some:
                lines.append(_line(some, style, hollow=hollow))
        for group in members:
            summary = group.summary(METRIC)
            assert summary is not None
            rows.append([
                labels[group.cell], str(group.cell.ranks), number(summary.median),
                str(summary.count), accuracy_text(group),
                Chip("over-subscribed", "warn") if group.over_subscribed else None,
            ])  # fmt: skip
    bound = _bound_line(context, groups)
    if bound is not None:
        lines.append(bound)
        legends.append(("roofline bound", bound.style))
    heights = [y for line in lines for _, y in line.points]
    log = log_is_better(heights)
    ranks = sorted({group.cell.ranks for group in groups})
    columns = [
        Column("Cell"), Column("Ranks", numeric=True), Column("Median (samples/s)", numeric=True),
        Column("Runs", numeric=True), Column("Accuracy", numeric=True), Column(""),
    ]  # fmt: skip
    drawing = line_plot(
        lines, x_title="ranks", y_title="samples/s", x_log=True, y_log=log, ticks=ranks, height=260
    )
    return Chart(
        title="Throughput over ranks",
        svg=render(
            drawing,
            alt_text=f"{workload}: samples per second over {', '.join(map(str, ranks))} ranks, a "
            "line per framework and strategy.",
            name=f"ranks-{workload}",
        ),
        alt="Samples per second over the number of ranks.",
        note="Lines join only points within the machine's cores.",
        legend=legend(legends),
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )


def _series_name(group: Group, among: list[Group]) -> str:
    cell = group.cell
    parts = [cell.framework, cell.strategy]
    if len({other.cell.network for other in among}) > 1:
        parts.append(cell.network)
    per_node = {other.cell.ranks_per_node for other in among}
    if len(per_node) > 1 and any(other.cell.nodes > 1 for other in among):
        parts.append(f"{cell.ranks_per_node} per node")
    return " · ".join(part for part in parts if part)


def _line(groups: list[Group], style: Style, *, hollow: bool) -> Line:
    points, scatter = [], []
    for group in groups:
        summary = group.summary(METRIC)
        assert summary is not None
        ranks = float(group.cell.ranks)
        points.append((ranks, summary.median))
        scatter += [(ranks, value) for value in group.values(METRIC)]
    return Line(points=points, scatter=scatter, style=style, joined=not hollow, hollow=hollow)


def _bound_line(context: Context, groups: list[Group]) -> Line | None:
    """The bound of cells with one thread per rank; it is the same for every framework.

    As many ranks on more nodes have more memory bandwidth: the highest bound is drawn.
    """
    points: dict[float, float] = {}
    for group in groups:
        bound, batch = step_bound(group, context.rates), group.global_batch
        if bound is not None and batch:
            ranks = float(group.cell.ranks)
            points[ranks] = max(points.get(ranks, 0.0), bound.rate(batch))
    if not points:
        return None
    style = Style(MUTED, "square", (2, 2))
    return Line(points=sorted(points.items()), style=style, width=1.5)


def _efficiency_table(context: Context, workload: str, groups: list[Group]) -> list[Block]:
    floor = context.floors.get("train", workload, METRIC)
    every = efficiencies(groups, floor)
    if not every:
        return []
    labels = group_labels(groups, always=("ranks",))
    rows = [
        [
            labels[one.group.cell], number(one.rate), labels[one.base.cell], number(one.base_rate),
            one.kind.value, number(one.rate / one.base_rate), percent(one.value),
            Chip("superlinear", "warn") if one.superlinear else None,
        ]
        for one in every
    ]  # fmt: skip
    columns = [
        Column("Cell"), Column("samples/s", numeric=True), Column("Base"),
        Column("Base samples/s", numeric=True), Column("Scaling"),
        Column("Speed-up", numeric=True), Column("Efficiency", numeric=True), Column(""),
    ]  # fmt: skip
    caption = f"{workload}: efficiency against a declared base. Over-subscribed cells have none."
    return [Table(columns=columns, rows=rows, caption=caption)]
