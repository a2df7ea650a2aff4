"""Throughput over ranks, and the efficiencies with their bases."""

from __future__ import annotations

import re
from collections import defaultdict

from transect.analysis.bounds import step_bound
from transect.analysis.groups import Group, group_labels
from transect.analysis.kinds import main_kind
from transect.analysis.scaling import METRIC, efficiencies
from transect.analysis.twins import own_batch
from transect.report.blocks import Block, Chart, Chip, Column, Table
from transect.report.charts.plots import Line, line_plot, log_is_better
from transect.report.charts.theme import MUTED, Style, legend, render
from transect.report.context import Context
from transect.report.sections.throughput import accuracy_text
from transect.report.text import number, percent

__all__ = ["scaling_blocks"]

_MOST_LINES = 8
# A longer table is folded.
_MOST_ROWS = 24


def scaling_blocks(
    context: Context, workload: str, groups: list[Group]
) -> tuple[list[Chart], list[Block]]:
    """Return the chart over ranks and the table of efficiencies; empty with one rank count."""
    found = [group for group in groups if group.values(METRIC)]
    if len({group.cell.ranks for group in found}) < 2:
        return [], []
    charts = [_chart(context, workload, name, some) for name, some in _panels(found).items()]
    return charts, _efficiency_table(context, workload, groups)


def _panels(groups: list[Group]) -> dict[str, list[Group]]:
    """Part groups whose lines would look alike, or be more than can be told apart.

    Each kind of scaling has a panel, and each framework when there are many lines. One rank is where
    both kinds of scaling begin. A panel shows more than one number of ranks.
    """
    many = len(_series(groups)) > _MOST_LINES
    found: dict[str, list[Group]] = {}
    for framework in sorted({group.cell.framework or "" for group in groups} if many else {""}):
        own = [group for group in groups if not many or (group.cell.framework or "") == framework]
        grown = [group for group in own if group.cell.ranks > 1 and _weak(group)]
        ways = {_way(group) for group in grown}
        weak = [g for g in own if g.cell.ranks == 1 and _way(g) in ways]
        for some, how in (([g for g in own if g not in grown], ""), (weak + grown, "weak scaling")):
            if len({group.cell.ranks for group in some}) > 1:
                found[", ".join(part for part in (framework, how) if part)] = some
    return found or {"": groups}


def _way(group: Group) -> tuple[str | None, str | None]:
    return group.cell.framework, group.cell.strategy


def _weak(group: Group) -> bool:
    own, batch = own_batch(group), group.global_batch
    return own is not None and batch is not None and batch != own


def _series(groups: list[Group]) -> dict[tuple[str, ...], list[Group]]:
    series: dict[tuple[str, ...], list[Group]] = defaultdict(list)
    # Ranks are added on one node or node by node: a line never changes from one to the other.
    several_nodes = any(group.cell.nodes > 1 for group in groups)
    weak = all(_weak(group) or group.cell.ranks == 1 for group in groups)
    for group in groups:
        cell = group.cell
        key = (cell.framework or "", cell.strategy or "", str(cell.threads), group.kind.words,
               "weak" if weak or _weak(group) else str(cell.batch), cell.device, cell.network or "",
               str(cell.ranks_per_node) if several_nodes else "")  # fmt: skip
        series[key].append(group)
    return series


def _chart(context: Context, workload: str, name: str, groups: list[Group]) -> Chart:
    lines, legends, rows = [], [], []
    labels = group_labels(groups, always=("ranks",))
    for members in _series(groups).values():
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
        title="Throughput over ranks" + (f": {name}" if name else ""),
        svg=render(
            drawing,
            alt_text=f"{workload}: samples per second over {', '.join(map(str, ranks))} ranks, a "
            "line per framework and strategy.",
            name=f"ranks-{workload}" + re.sub(r"[^a-z0-9]+", "-", f"-{name}" if name else ""),
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
    floor = context.floors.get("train", workload, METRIC, main_kind(groups))
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
    folded = f"Efficiencies of {workload}" if len(rows) > _MOST_ROWS else ""
    return [Table(columns=columns, rows=rows, caption=caption, folded=folded)]
