"""Throughput over ranks, and the efficiencies with their bases."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.analysis.bounds import step_bound
from transect.analysis.groups import Group, grouped
from transect.analysis.kinds import main_kind
from transect.analysis.scaling import METRIC, Efficiency, TrainGroup, efficiencies
from transect.analysis.twins import own_batch
from transect.report.blocks import Chip, Column, Part, digits, table, words
from transect.report.charts.chart import MOST_PANELS, line_chart
from transect.report.columns import ACCURACY, RANKS, labelled, medians, training_series
from transect.report.context import Context
from transect.report.text import percent

__all__ = ["efficiency_table", "scaling_charts"]

# Lines from which on each framework has a panel, and that one panel holds.
_MOST_LINES, _MOST_DRAWN = 8, 24


def scaling_charts(context: Context, workload: str, groups: list[TrainGroup]) -> Iterator[Part]:
    """Draw samples/s over ranks; nothing with one rank count."""
    measured = [group for group in groups if group.values(METRIC)]
    if _several_ranks(measured):
        for name, members in list(_panels(measured).items())[:MOST_PANELS]:
            yield _chart(context, workload, name, members)


def _several_ranks(groups: list[TrainGroup]) -> bool:
    return len({group.cell.ranks for group in groups}) > 1


def _panels(groups: list[TrainGroup]) -> dict[str, list[TrainGroup]]:
    """Part groups whose lines would look alike, or be more than can be told apart.

    Each kind of scaling has a panel, and each framework when there are many lines. One rank is where
    both kinds of scaling begin. A panel shows more than one number of ranks.
    """
    many = len(_series(groups)) > _MOST_LINES
    of_framework = grouped(groups, lambda group: group.cell.framework if many else "")
    parts: dict[str, list[TrainGroup]] = {}
    for framework, own in sorted(of_framework.items()):
        grown = [group for group in own if group.cell.ranks > 1 and _weak(group)]
        ways = {(group.cell.framework, group.cell.strategy) for group in grown}
        bases = [
            group for group in own
            if group.cell.ranks == 1 and (group.cell.framework, group.cell.strategy) in ways
        ]  # fmt: skip
        strong = [group for group in own if group not in grown]
        for members, how in ((strong, ""), (bases + grown, "weak scaling")):
            if _several_ranks(members):
                parts[", ".join(part for part in (framework, how) if part)] = members
    return parts or {"": groups}


def _weak(group: Group) -> bool:
    own, batch = own_batch(group), group.global_batch
    return own is not None and batch is not None and batch != own


def _series(groups: list[TrainGroup]) -> list[list[TrainGroup]]:
    """Part groups by line, each in the order of its ranks."""
    # Ranks are added on one node or node by node: a line never changes from one to the other.
    several_nodes = any(group.cell.nodes > 1 for group in groups)
    weak = all(_weak(group) or group.cell.ranks == 1 for group in groups)

    def line(group: TrainGroup) -> tuple[object, ...]:
        cell = group.cell
        batch = "weak" if weak or _weak(group) else cell.batch
        per_node = cell.ranks_per_node if several_nodes else None
        return (cell.framework, cell.strategy, cell.threads, group.kind, batch, cell.device,
                cell.network, per_node)  # fmt: skip

    lines = grouped(groups, line).values()
    return [sorted(members, key=lambda group: group.cell.ranks) for members in lines]


def _chart(context: Context, workload: str, name: str, groups: list[TrainGroup]) -> Part:
    every = _series(groups)
    ranks = ", ".join(str(ranks) for ranks in sorted({group.cell.ranks for group in groups}))
    return line_chart(
        training_series(context, every, lambda group: group.cell.ranks,
                        lambda group: group.values(METRIC)),
        [group for members in every for group in members],
        [
            labelled(groups, always=("ranks",)), RANKS,
            medians("Median (samples/s)", METRIC),
            digits("Runs", lambda group: len(group.values(METRIC))), ACCURACY,
            words("", lambda group: Chip("over-subscribed", "warn")
                  if group.over_subscribed else None),
        ],
        title="Throughput over ranks" + (f": {name}" if name else ""), x="ranks", y="samples/s",
        name=f"ranks-{workload}" + re.sub(r"[^a-z0-9]+", "-", f"-{name}" if name else ""),
        alt=f"{workload}: samples per second over {ranks} ranks, a line per framework and "
        "strategy.",
        notes=["Lines join only points within the machine's cores."], most=_MOST_DRAWN,
        bound=_bounds(context, groups), bound_name="roofline bound",
    )  # fmt: skip


def _bounds(context: Context, groups: list[TrainGroup]) -> dict[float, float]:
    """The bound by ranks of cells with one thread per rank; it is the same for every framework.

    As many ranks on more nodes have more memory bandwidth: the highest bound is drawn.
    """
    bounds: dict[float, float] = {}
    for group in groups:
        bound, batch = step_bound(group, context.rates), group.global_batch
        if bound is not None and batch:
            ranks = group.cell.ranks
            bounds[ranks] = max(bounds.get(ranks, 0.0), bound.rate(batch))
    return bounds


def efficiency_table(context: Context, workload: str, groups: list[TrainGroup]) -> Part:
    """List the efficiencies of all groups that have a base; None without any."""
    floor = context.floors.get("train", workload, METRIC, main_kind(groups))
    every = efficiencies(groups, floor)
    label = labelled(groups, always=("ranks",))
    columns: list[Column[Efficiency]] = [
        label, digits("samples/s", lambda gain: gain.rate),
        words("Base", lambda gain: label.entry(gain.base)),
        digits("Base samples/s", lambda gain: gain.base_rate),
        words("Scaling", lambda gain: gain.kind.value),
        digits("Speed-up", lambda gain: gain.rate / gain.base_rate),
        digits("Efficiency", lambda gain: gain.value, percent),
        words("", lambda gain: Chip("superlinear", "warn") if gain.superlinear else None),
    ]  # fmt: skip
    caption = f"{workload}: efficiency against a declared base. Over-subscribed cells have none."
    return table(every, columns, caption=caption,
                 fold_title=f"Efficiencies of {workload}") if every else None  # fmt: skip
