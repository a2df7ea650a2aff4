"""Which cells of a block are decided: each beside the best of those that it is compared with.

The runner of a block asks here whether more repeats are needed, and the report's comparisons are the
same ones: `compare`, `compare_paired`, the noise of `Floors`, and Holm's correction.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from enum import StrEnum

from transect.analysis.comparisons import Comparison, Sureness, compare, compare_paired
from transect.analysis.groups import Floors, Group, grouped
from transect.analysis.verdicts import LEVEL, corrected, half_width
from transect.domain.cell import Cell
from transect.domain.metrics import Direction, metric
from transect.domain.until import Contest

__all__ = ["Standing", "contests", "standings"]


class Standing(StrEnum):
    """Whether a cell's repeats are enough, and why."""

    OPEN = "open"
    DECIDED = "decided"
    INTERVAL = "interval"
    NO_RESULT = "no result"
    ALONE = "nothing to compare with"


def contests(
    groups: Sequence[Group], contest: Contest, floors: Floors
) -> list[tuple[Group, Group, Comparison]]:
    """Compare the best with each other group of its set, on each metric: (best, other, comparison).

    Groups that gave a wrong result, failed or share cores take no part.
    """
    able = [g for g in groups if g.ok and not g.wrong and not g.over_subscribed]

    def rivals(group: Group) -> Hashable:
        cell = group.cell
        return cell.stage, cell.workload, group.kind, *(cell.get(axis) for axis in contest.apart)

    found = []
    for members in grouped(able, rivals).values():
        for name in (*contest.seeded, *contest.metrics):
            having = [g for g in members if len(g.values(name)) == len(g.ok)]
            if len(having) > 1:
                found += _beside_best(having, name, floors, paired=name in contest.seeded)
    return found


def _beside_best(
    groups: Sequence[Group], name: str, floors: Floors, *, paired: bool
) -> list[tuple[Group, Group, Comparison]]:
    direction = metric(name).direction
    sign = -1 if direction is Direction.HIGHER else 1
    best, *rest = sorted(
        groups, key=lambda g: (sign * statistics.median(g.values(name)), g.cell.id)
    )
    cell = best.cell
    found = []
    for other in rest:
        if paired:
            floor = floors.paired(cell.stage, cell.workload, name, best.kind)
            told = compare_paired(
                best.by_repeat(name), other.by_repeat(name), direction=direction, floor=floor
            )
        else:
            floor = floors.get(cell.stage, cell.workload, name, best.kind)
            told = compare(best.values(name), other.values(name), direction=direction, floor=floor)
        if told is not None:
            found.append((best, other, replace(told, among=len(groups))))
    return found


def standings(
    groups: Sequence[Group],
    contest: Contest,
    floors: Floors,
    *,
    interval: float | None,
    decide: bool,
    looks: int,
) -> dict[Cell, Standing]:
    """Return how each group stands, by its cell without repeat.

    `interval`: enough when the 95 % interval of a cell's speed is no wider to either side, a share.
    `decide`: enough when all of its comparisons are firm, corrected for all that are made here. A group
    without a usable result is not measured on.
    """
    made = contests(groups, contest, floors)
    decided = [one for _, _, one in made if one.decision is not None]
    decisions = [one.decision for one in decided if one.decision is not None]
    p = dict(zip(map(id, decided), corrected(decisions, [d.ways for d in decided]), strict=True))
    of_group: dict[int, list[bool]] = {}
    for best, other, one in made:
        firm = one.sureness is Sureness.FIRM and p.get(id(one), 1.0) <= LEVEL
        for group in (best, other):
            of_group.setdefault(id(group), []).append(firm)
    return {
        group.cell: _standing(
            group, of_group.get(id(group), ()), decide=decide,
            width=_width(group, contest, floors, looks), interval=interval,
        )
        for group in groups
    }  # fmt: skip


def _standing(
    group: Group, firm: Collection[bool], *, width: float, interval: float | None, decide: bool
) -> Standing:
    if not group.ok or group.wrong:
        return Standing.NO_RESULT
    if decide and firm and all(firm):
        return Standing.DECIDED
    if interval is not None:
        return Standing.INTERVAL if width <= interval else Standing.OPEN
    return Standing.OPEN if firm else Standing.ALONE


def _width(group: Group, contest: Contest, floors: Floors, looks: int) -> float:
    """Return half the width of a cell's interval of its speed; inf where nothing tells it."""
    for name in contest.metrics:
        values = group.values(name)
        if values:
            floor = floors.get(group.cell.stage, group.cell.workload, name, group.kind)
            return half_width(values, floor.noise if floor else None, looks=looks)
    return math.inf
