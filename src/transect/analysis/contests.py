"""Which cells of a block are decided: each is compared with the best of its set.

The runner of a block asks here whether more repeats are needed, and the report's comparisons are the
same ones: `compare`, `compare_paired`, the noise of `Floors`, and Holm's correction.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from transect.analysis.groups import Floors, Group, grouped
from transect.analysis.side_by_side import under
from transect.domain.cell import Cell
from transect.domain.metrics import Direction, metric
from transect.domain.until import ComparisonRule
from transect.stats.comparisons import Comparison, Confidence, compare, compare_paired
from transect.stats.noise import middle
from transect.stats.verdicts import LEVEL, corrected, half_width


class Standing(StrEnum):
    """Whether a cell's repeats are enough, and why."""

    OPEN = "open"
    DECIDED = "decided"
    INTERVAL = "interval"
    NO_RESULT = "no result"
    ALONE = "nothing to compare with"


def contests(groups: Sequence[Group], rule: ComparisonRule, floors: Floors) -> list[tuple[Group, Group, Comparison]]:
    """Compare the best with each other group of its set: (best, other, comparison).

    Groups that have the metric in all of their runs; those that gave a wrong result, failed or share cores
    take no part. None is confirmed of which too many repeats were disturbed.
    """
    able = [g for g in groups if g.ok and not g.wrong and not g.over_subscribed]
    return [found for single_rule in rule.each() for found in _of_one(able, single_rule, floors)]


def _of_one(able: Sequence[Group], rule: ComparisonRule, floors: Floors) -> Iterator[tuple[Group, Group, Comparison]]:
    def rivals(group: Group) -> Hashable:
        cell = group.cell
        return cell.stage, cell.workload, group.kind, *(cell.get(axis) for axis in rule.stratify_by)

    for members in grouped(able, rivals).values():
        # Who is first to the quality is not asked again who is fast.
        seeded = () if members[0].kind.synthetic else rule.paired_metrics
        for name in seeded or rule.metrics:
            having = [g for g in members if len(g.values(name)) == len(g.ok)]
            if rule.best_of:
                runs = grouped(having, lambda g: tuple(g.cell.get(axis) for axis in rule.best_of))
                having = [_ranked(heat, name, paired=bool(seeded))[0] for heat in runs.values()]
            if len(having) > 1:
                yield from _beside_best(having, name, floors, paired=bool(seeded))


def _beside_best(
    groups: Sequence[Group], name: str, floors: Floors, *, paired: bool
) -> list[tuple[Group, Group, Comparison]]:
    best, *others = _ranked(groups, name, paired=paired)
    direction, cell = metric(name).direction, best.cell
    found = []
    for rival in others:
        if paired:
            floor = floors.paired(cell.stage, cell.workload, name, best.kind)
            comparison = compare_paired(best.by_repeat(name), rival.by_repeat(name), direction=direction, floor=floor)
        else:
            floor = floors.get(cell.stage, cell.workload, name, best.kind)
            comparison = compare(best.values(name), rival.values(name), direction=direction, floor=floor)
        if comparison is not None:
            comparison = under(replace(comparison, n_candidates=len(groups)), best, rival)
            found.append((best, rival, comparison))
    return found


def _ranked(groups: Sequence[Group], name: str, *, paired: bool) -> list[Group]:
    """Return the groups by what is compared of them, the best first; `paired`: of the repeats that all have."""
    sign = -1 if metric(name).direction is Direction.HIGHER else 1
    # Seeds that not all have would say who is best by what they are.
    common = set.intersection(*(set(group.by_repeat(name)) for group in groups)) if paired else ()

    def values(group: Group) -> list[float]:
        each = group.by_repeat(name)
        return [each[n] for n in common] or list(each.values())

    return sorted(groups, key=lambda group: (sign * middle(values(group)), group.cell.id))


def standings(
    groups: Sequence[Group],
    rule: ComparisonRule,
    floors: Floors,
    *,
    interval: float | None,
    decide: bool,
    looks: int,
    ways: float = 0.0,
) -> dict[Cell, Standing]:
    """Return how each group stands.

    `interval`: enough when the 95 % interval of a cell's speed is no wider to either side, a share.
    `decide`: enough when all of its comparisons are confirmed, corrected for all that are made here, or for
    `ways` if that is more: what the whole study compares. A group without a usable result is not measured on.
    """
    made = contests(groups, rule, floors)
    decided = [comparison for _, _, comparison in made if comparison.decision is not None]
    decisions = [comparison.decision for comparison in decided if comparison.decision is not None]
    counts = [comparison.n_comparisons for comparison in decided]
    ways = max(ways, math.fsum(counts))
    adjusted = corrected(decisions, counts, beyond=ways - math.fsum(counts))
    p = dict(zip(map(id, decided), adjusted, strict=True))
    confirmed: dict[int, list[bool]] = {}
    for best, rival, comparison in made:
        sound = comparison.confidence is Confidence.CONFIRMED and p.get(id(comparison), 1.0) <= LEVEL
        for group in (best, rival):
            confirmed.setdefault(id(group), []).append(sound)
    return {
        group.cell: _standing(
            group,
            confirmed.get(id(group), ()),
            decide=decide,
            width=_width(group, rule, floors, looks),
            interval=interval,
        )
        for group in groups
    }


def _standing(
    group: Group, confirmed: Collection[bool], *, width: float, interval: float | None, decide: bool
) -> Standing:
    if not group.ok or group.wrong:
        return Standing.NO_RESULT
    if decide and confirmed and all(confirmed):
        return Standing.DECIDED
    if interval is not None:
        return Standing.INTERVAL if width <= interval else Standing.OPEN
    return Standing.OPEN if confirmed else Standing.ALONE


def _width(group: Group, rule: ComparisonRule, floors: Floors, looks: int) -> float:
    """Return half the width of a cell's interval of its speed; inf where nothing tells it."""
    for name in rule.metrics:
        values = group.values(name)
        if values:
            floor = floors.get(group.cell.stage, group.cell.workload, name, group.kind)
            return half_width(values, floor.noise if floor else None, looks=looks)
    return math.inf
