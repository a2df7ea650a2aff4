"""Throughput over ranks, and the efficiencies with their bases."""

from __future__ import annotations

import re
from collections import defaultdict

from transect.analysis.bounds import step_bound
from transect.analysis.groups import Group, group_labels
from transect.analysis.kinds import main_kind
from transect.analysis.scaling import METRIC, Efficiency, efficiencies
from transect.analysis.twins import own_batch
from transect.report.blocks import Block, Chart, Chip, Column, digits, table, words
from transect.report.charts.chart import MOST_PANELS, drawn
from transect.report.charts.plots import Line, line_plot, log_is_better
from transect.report.charts.theme import MUTED, Style, legend
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.sections.columns import RANKS, accuracy_text, label_column
from transect.report.text import count, number, percent

__all__ = ["scaling_blocks"]

# Lines from which on each framework has a panel, and that one panel holds.
_MOST_LINES, _MOST_DRAWN = 8, 24
# A longer table is folded.
_MOST_OPEN = 24


def scaling_blocks(
    context: Context, workload: str, groups: list[Group]
) -> tuple[list[Chart], list[Block]]:
    """Return the chart over ranks and the table of efficiencies; empty with one rank count."""
    measured = [group for group in groups if group.values(METRIC)]
    if len({group.cell.ranks for group in measured}) < 2:
        return [], []
    panels = list(_panels(measured).items())[:MOST_PANELS]
    charts = [_chart(context, workload, name, members) for name, members in panels]
    return charts, _efficiency_table(context, workload, groups)


def _panels(groups: list[Group]) -> dict[str, list[Group]]:
    """Part groups whose lines would look alike, or be more than can be told apart.

    Each kind of scaling has a panel, and each framework when there are many lines. One rank is where
    both kinds of scaling begin. A panel shows more than one number of ranks.
    """
    many = len(_series(groups)) > _MOST_LINES
    parts: dict[str, list[Group]] = {}
    for framework in sorted(
        {group.cell.get("framework") or "" for group in groups} if many else {""}
    ):
        own = [
            group
            for group in groups
            if not many or (group.cell.get("framework") or "") == framework
        ]
        grown = [group for group in own if group.cell.ranks > 1 and _weak(group)]
        ways = {_way(group) for group in grown}
        weak = [g for g in own if g.cell.ranks == 1 and _way(g) in ways]
        for members, how in (
            ([g for g in own if g not in grown], ""),
            (weak + grown, "weak scaling"),
        ):
            if len({group.cell.ranks for group in members}) > 1:
                parts[", ".join(part for part in (framework, how) if part)] = members
    return parts or {"": groups}


def _way(group: Group) -> tuple[str | None, str | None]:
    return group.cell.get("framework"), group.cell.get("strategy")


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
        key = (cell.get("framework") or "", cell.get("strategy") or "", str(cell.threads), group.kind.words,
               "weak" if weak or _weak(group) else str(cell.get("batch")), cell.device, cell.network or "",
               str(cell.ranks_per_node) if several_nodes else "")  # fmt: skip
        series[key].append(group)
    return series


def _chart(context: Context, workload: str, name: str, groups: list[Group]) -> Chart:
    labels = group_labels(groups, always=("ranks",))
    every = list(_series(groups).values())
    lines, legends = [], []
    for members in every[:_MOST_DRAWN]:
        members.sort(key=lambda group: group.cell.ranks)
        style = context.style(members[0])
        legends.append((_series_name(members[0], groups), style))
        for hollow in (False, True):
            alike = [group for group in members if group.over_subscribed is hollow]
            if alike:
                lines.append(_line(alike, style, hollow=hollow))
    bound = _bound_line(context, groups)
    if bound is not None:
        lines.append(bound)
        legends.append(("roofline bound", bound.style))
    ranks = sorted({group.cell.ranks for group in groups})
    cut = len(every) - _MOST_DRAWN
    return drawn(
        line_plot(
            lines, x_title="ranks", y_title="samples/s", x_log=True, ticks=ranks, height=260,
            y_log=log_is_better([y for line in lines for _, y in line.points]),
        ),
        [group for members in every for group in members],
        [
            label_column(labels), RANKS,
            digits("Median (samples/s)", lambda group: number(median(group, METRIC) or 0.0)),
            digits("Runs", lambda group: str(len(group.values(METRIC)))),
            digits("Accuracy", accuracy_text),
            words("", lambda group: Chip("over-subscribed", "warn")
                  if group.over_subscribed else None),
        ],
        title="Throughput over ranks" + (f": {name}" if name else ""),
        name=f"ranks-{workload}" + re.sub(r"[^a-z0-9]+", "-", f"-{name}" if name else ""),
        alt=f"{workload}: samples per second over {', '.join(map(str, ranks))} ranks, a line per "
        "framework and strategy.",
        notes=("Lines join only points within the machine's cores.",
               f"{count(cut, 'series', 'series')} more in the numbers." if cut > 0 else ""),
        legend=legend(legends),
    )  # fmt: skip


def _series_name(group: Group, among: list[Group]) -> str:
    cell = group.cell
    parts = [cell.get("framework"), cell.get("strategy")]
    if len({other.cell.network for other in among}) > 1:
        parts.append(cell.network)
    per_node = {other.cell.ranks_per_node for other in among}
    if len(per_node) > 1 and any(other.cell.nodes > 1 for other in among):
        parts.append(f"{cell.ranks_per_node} per node")
    return " · ".join(part for part in parts if part)


def _line(groups: list[Group], style: Style, *, hollow: bool) -> Line:
    points = [(float(group.cell.ranks), median(group, METRIC) or 0.0) for group in groups]
    scatter = [(float(g.cell.ranks), value) for g in groups for value in g.values(METRIC)]
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
    columns: list[Column[Efficiency]] = [
        words("Cell", lambda gain: labels[gain.group.cell]),
        digits("samples/s", lambda gain: number(gain.rate)),
        words("Base", lambda gain: labels[gain.base.cell]),
        digits("Base samples/s", lambda gain: number(gain.base_rate)),
        words("Scaling", lambda gain: gain.kind.value),
        digits("Speed-up", lambda gain: number(gain.rate / gain.base_rate)),
        digits("Efficiency", lambda gain: percent(gain.value)),
        words("", lambda gain: Chip("superlinear", "warn") if gain.superlinear else None),
    ]
    caption = f"{workload}: efficiency against a declared base. Over-subscribed cells have none."
    fold_title = f"Efficiencies of {workload}"
    return [table(every, columns, caption=caption, fold_above=_MOST_OPEN, fold_title=fold_title)]
