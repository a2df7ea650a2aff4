"""The type of a finding, and what several kinds of finding share."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from transect.analysis.comparisons import (
    Comparison,
    Sureness,
    Verdict,
    compare,
    compare_paired,
)
from transect.analysis.groups import Group
from transect.analysis.statistics import NoiseFloor
from transect.domain.metrics import Direction, metric

__all__ = ["Finding", "Race", "machine_differences", "names", "race"]

_MACHINE = ("host", "cpu_model", "cores", "memory_bytes", "kernel", "gpus", "git")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One sentence of the report. `about` is the workload or stage that it speaks of."""

    text: str
    evidence: str
    sureness: Sureness
    kind: str
    about: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Race:
    """Groups ranked by one metric. `tied` holds those not distinguishable from the best.

    `values` are those of the best that it was ranked by.
    """

    best: Group
    values: tuple[float, ...]
    tied: tuple[Group, ...]
    runner_up: Group | None
    comparison: Comparison | None


def race(
    groups: Sequence[Group], name: str, floor: NoiseFloor | None, *, paired: bool = False
) -> Race | None:
    """Rank by median; nothing wins over a group that it cannot be told apart from.

    `paired`: by the repeats that all groups have, and compared seed by seed; the floor is then
    that of `Floors.paired`. Groups without a common repeat are compared as they are, without it.

    `runner_up` is the nearest group that is really worse, or the nearest tied one.
    None when no group has the metric.
    """
    direction = metric(name).direction
    sign = -1 if direction is Direction.HIGHER else 1
    having = [group for group in groups if group.values(name)]
    common = set.intersection(*(set(g.by_repeat(name)) for g in having)) if having else set()
    if paired and not common:
        # Their seeds differ, and the floor knows nothing of that.
        paired, floor = False, None

    def values(group: Group) -> list[float]:
        if paired:
            return [value for n, value in group.by_repeat(name).items() if n in common]
        return group.values(name)

    def order(group: Group) -> tuple[float, str]:
        return sign * statistics.median(values(group)), group.cell.id

    ranked = sorted(having, key=order)
    if not ranked:
        return None
    best, rest = ranked[0], ranked[1:]

    def against(other: Group) -> Comparison | None:
        if paired:
            mine, theirs = best.by_repeat(name), other.by_repeat(name)
            return compare_paired(mine, theirs, direction=direction, floor=floor)
        return compare(values(best), values(other), direction=direction, floor=floor)

    found = [(other, against(other)) for other in rest]
    tied = tuple(g for g, c in found if c is not None and c.verdict is not Verdict.BETTER)
    nearest = [pair for pair in found if pair[0] in tied] or found
    runner_up, comparison = nearest[0] if nearest else (None, None)
    return Race(
        best=best, values=tuple(values(best)), tied=tied, runner_up=runner_up, comparison=comparison
    )


def names(items: Sequence[str], limit: int = 3) -> str:
    """Join names: `a, b and 2 more`."""
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1] if items else ""]))


def machine_differences(a: Group, b: Group) -> list[str]:
    """Name the facts of machine and code in which two compared groups differ."""
    differing = []
    for key in _MACHINE:
        left = {repr(record.provenance.get(key)) for record in a.ok}
        right = {repr(record.provenance.get(key)) for record in b.ok}
        if left != right:
            differing.append(key)
    return differing
