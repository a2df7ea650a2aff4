"""Point-to-point messages beside the collective that does the same work."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.contrasts import contrast
from transect.analysis.groups import grouped
from transect.analysis.labels import word
from transect.analysis.scaling import METRIC, TrainGroup
from transect.report.engine.blocks import Part, digits, table, words
from transect.report.engine.columns import NOT_TOLD
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import doubt_words, verdict_chip
from transect.report.engine.finding import Finding, joined, limited_confidence
from transect.report.engine.finding import median as median_of
from transect.report.engine.text import clean, ends, factor, in_unit, quantity, with_ends
from transect.report.topics.parallel.words import strategy_words
from transect.report.topics.ranks.published_series import GO_WITH_MPI
from transect.report.topics.ranks.series import replicas

# Point-to-point messages, and the collective that does the same work.
_PAIRS = (("mpi-sendrecv", "mpi-allreduce"), ("published-sendrecv", "published-allreduce"))


@dataclass(frozen=True, kw_only=True, slots=True)
class PointToPoint:
    """Point-to-point messages compared with the collective, on equal ranks over one network.

    `result` is by samples a second, as a rank that trains nothing leaves the others more of them.
    """

    group: TrainGroup
    collective: TrainGroup
    result: Contrast


def point_to_point(context: Context) -> list[PointToPoint]:
    """Return every pair, in order of workload, network and ranks."""

    def place(group: TrainGroup) -> Hashable:
        return group.cell.apart_from("strategy", "options", "batch")

    able = [group for group in context.of("train") if group.cell.ranks > 1 and group.ok and not group.wrong]
    planned = {(each.group.cell, each.base.cell): each for each in context.contrasts.of("rank.point-to-point")}
    found = []
    for members in grouped(able, place).values():
        for way, rival in _PAIRS:
            for direct in (group for group in members if group.cell.strategy == way):
                collective = next((g for g in members if _rivals(g, direct, rival)), None)
                if collective is None:
                    continue
                result = planned.get((direct.cell, collective.cell)) or contrast(
                    direct, collective, context.floors, METRIC, varies="strategy"
                )
                if result is not None:
                    found.append(PointToPoint(group=direct, collective=collective, result=result))

    def order(pair: PointToPoint) -> tuple[object, ...]:
        cell = pair.group.cell
        return (cell.workload, cell.framework, cell.network or "", cell.nodes, cell.ranks, cell.id)

    return sorted(found, key=order)


def _rivals(group: TrainGroup, direct: TrainGroup, strategy: str) -> bool:
    """Whether it is that strategy with as many samples on each rank that trains."""
    same = group.cell.strategy == strategy and not group.cell.options
    return same and _share(group) == _share(direct) is not None


def _share(group: TrainGroup) -> float | None:
    return group.global_batch / replicas(group) if group.global_batch else None


def _place_words(pair: PointToPoint) -> str:
    """Say where two ways were compared: workload, framework, nodes and ranks, network."""
    cell = pair.group.cell
    ranks = f"{cell.nodes}x{cell.ranks_per_node}" if cell.nodes > 1 else str(cell.ranks)
    network = f" over {cell.network}" if cell.network else ""
    return clean(f"{cell.workload}, {word('framework', cell.framework)}, {ranks} ranks{network}")


def strongest(pairs: list[PointToPoint]) -> list[PointToPoint]:
    """Return one pair for each workload, framework and network: on the most ranks within the cores, if any."""
    of_way = grouped(pairs, lambda p: tuple(map(p.group.cell.get, ("workload", "framework", "strategy", "network"))))
    return [max(found, key=lambda p: (not p.result.over_subscribed, p.group.cell.ranks)) for found in of_way.values()]


def messages_finding(pair: PointToPoint, asked: bool) -> Finding:
    """Say how long point-to-point messages take beside the collective."""
    result, way, rival = pair.result, strategy_words(pair.group), strategy_words(pair.collective)
    lead = f"{GO_WITH_MPI}, point-to-point beside the collective: " if asked else ""
    takes = f"{way} takes {factor(result.cost.value)} times ({ends(result.cost, factor)}) as long for a sample"
    return Finding(
        subject="claims" if asked else "study",
        kind="point-to-point",
        named=True,
        confidence=limited_confidence(result.confidence, pair.group, pair.collective),
        contrasts=(result,),
        groups=(pair.group, pair.collective),
        short=f"{_place_words(pair)}: {takes}{doubt_words(result)}",
        claim=f"{lead}{takes} as {rival} ({_place_words(pair)}){doubt_words(result)}.",
        evidence=joined(
            f"waiting for messages in a step {quantity(_waited(pair.group), 's')} and {quantity(_waited(pair.collective), 's')}",
            result.reason,
        ),
    )


def _waited(group: TrainGroup) -> float | None:
    return median_of(group, "communication_time")


def messages_table(pairs: list[PointToPoint]) -> Part:
    """List every pair."""
    return table(
        pairs,
        [
            words("Where", _place_words),
            words("Point-to-point", lambda row: strategy_words(row.group)),
            words("Collective", lambda row: strategy_words(row.collective)),
            digits("Waits (step)", lambda row: _waited(row.group), in_unit("s"), NOT_TOLD),
            digits("Collective waits", lambda row: _waited(row.collective), in_unit("s"), NOT_TOLD),
            digits("Time of a sample, ratio", lambda row: with_ends(row.result.cost)),
            words("", lambda row: verdict_chip(row.result)),
        ],
        caption="Point-to-point over collective: time of a sample on equal ranks",
    )
