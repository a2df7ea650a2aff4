"""Which of several groups is the best, as far as contrasts show: who is excluded, who ties, who is not known."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

from scipy.special import stdtr

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread
from transect.stats.verdicts import Chance, power


class Excluded(NamedTuple):
    """A group that is shown to take longer than the best, and how many times as long."""

    group: Group[Any]
    times: Estimate
    confidence: Confidence


@dataclass(frozen=True, kw_only=True, slots=True)
class Best:
    """The best of several groups: the fastest, or of those that tie with it the one with the fewest cores, then the simplest.

    `fastest` has the best estimate. `excluded` are shown to be worse than `first`, `tied` to be the same within the
    margin, and `unknown` may be as good. `contrasts` are those that it rests on, and `tests` those along several of them.
    """

    first: Group[Any]
    fastest: Group[Any]
    excluded: tuple[Excluded, ...] = ()
    tied: tuple[Group[Any], ...] = ()
    unknown: tuple[Group[Any], ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    tests: tuple[Chance, ...] = ()
    # Whether each tie rests on contrasts that may be sure.
    sound_ties: bool = True

    @property
    def confidence(self) -> Confidence:
        """Whether it is the best, or ties with the best: not known as long as anybody may be better."""
        if self.unknown:
            return Confidence.INCONCLUSIVE
        levels = {level for _, _, level in self.excluded}
        doubted = not self.sound_ties or Confidence.PROVISIONAL in levels
        return Confidence.PROVISIONAL if doubted else Confidence.CONFIRMED


class _Path(NamedTuple):
    """How many times as long a group takes as another, along contrasts: logarithms, whose intervals add up."""

    log: float
    low: float
    high: float
    error: float
    freedom: float
    over: tuple[Contrast, ...]


_HERE = _Path(0.0, 0.0, 0.0, 0.0, math.inf, ())


def best(contrasts: Iterable[Contrast], groups: Sequence[Group[Any]], *, metric: str | None = None) -> Best | None:
    """Return the best of these groups along paths of contrasts; None without any group.

    What no path joins to the others is not known. `metric` ranks groups of which there is no contrast at all.
    """
    able = [group for group in groups if group.ok and not group.wrong]
    usable = [made for made in contrasts if made.decision is not None and not made.barred]
    edges: dict[int, list[tuple[int, _Path]]] = defaultdict(list)
    for made in usable:
        a, b = id(made.group), id(made.base)
        edges[b].append((a, _edge(made, 1)))
        edges[a].append((b, _edge(made, -1)))
    if not able:
        return None
    # From the group that most others are joined to.
    paths = max((_paths(id(group), edges) for group in able), key=lambda found: sum(id(g) in found for g in able))
    joined = [group for group in able if id(group) in paths]
    if len(joined) < 2 and metric is not None:
        having = [group for group in able if group.values(metric)]
        fastest = min(having or able, key=lambda g: (g.summary(metric).median if g.values(metric) else 0, g.cell.id))  # type: ignore[union-attr]
        joined = [fastest]
    fastest = min(joined, key=lambda group: (paths[id(group)].log if id(group) in paths else 0.0, group.cell.id))
    tied = [fastest, *_beside(fastest, able, edges)[1]]
    first = min(tied, key=lambda group: (group.cell.ranks * group.cell.threads, *_simple(group), tied.index(group)))
    excluded, same, unknown, over, tests, sound_ties = _beside(first, able, edges)
    return Best(
        first=first,
        fastest=fastest,
        excluded=tuple(excluded),
        tied=tuple(same),
        unknown=tuple(unknown),
        contrasts=tuple(dict.fromkeys(over)),
        tests=tuple(tests),
        sound_ties=sound_ties,
    )


def _simple(group: Group[Any]) -> tuple[int, int]:
    """Rank what is simpler first: one process alone, at the defaults of its options."""
    cell = group.cell
    return int(cell.get("strategy", "single") != "single"), len(cell.get("options") or ())


def _edge(made: Contrast, sign: int) -> _Path:
    """Return a contrast as seen from its base, or with -1 from its group."""
    assert made.decision is not None
    cost = made.cost if sign > 0 else made.cost.inverse
    return _Path(*cost.logs, made.decision.error, made.decision.freedom, (made,))


def _paths(start: int, edges: dict[int, list[tuple[int, _Path]]]) -> dict[int, _Path]:
    """Return the path to each group that contrasts join to the first: of the fewest, then of the narrowest interval."""
    found: dict[int, _Path] = {}
    waiting: list[tuple[int, float, int, int, _Path]] = [(0, 0.0, 0, start, _HERE)]
    count = 0
    while waiting:
        steps, width, _, point, path = heappop(waiting)
        if point in found:
            continue
        found[point] = path
        for following, edge in edges[point]:
            if following in found:
                continue
            count += 1
            longer = _Path(
                path.log + edge.log,
                path.low + edge.low,
                path.high + edge.high,
                path.error + edge.error,
                min(path.freedom, edge.freedom),
                (*path.over, *edge.over),
            )
            heappush(waiting, (steps + 1, width + edge.high - edge.low, count, following, longer))
    return found


def _beside(
    first: Group[Any], groups: Sequence[Group[Any]], edges: dict[int, list[tuple[int, _Path]]]
) -> tuple[list[Excluded], list[Group[Any]], list[Group[Any]], list[Contrast], list[Chance], bool]:
    """Return who is excluded beside a group, who ties, who is not known, what that rests on, and whether ties may be sure."""
    paths = _paths(id(first), edges)
    excluded: list[Excluded] = []
    tied: list[Group[Any]] = []
    unknown: list[Group[Any]] = []
    over: list[Contrast] = []
    tests: list[Chance] = []
    sound_ties = True
    for group in groups:
        if group is first:
            continue
        path = paths.get(id(group))
        if path is None:
            unknown.append(group)
            continue
        over += path.over
        edge = math.log1p(path.over[0].comparison.margin)
        sound = all(made.sound for made in path.over)
        if -edge <= path.low and path.high <= edge:
            tied.append(group)
            sound_ties &= sound
        elif path.low > 0:
            ends = {"low": power(path.low), "high": power(path.high)}
            # Intervals that add up are at least as sure as the least sure of them.
            level = min(made.ratio.level for made in path.over)
            times = Estimate(value=power(path.log), **ends, spread=Spread.INTERVAL, level=level)
            excluded.append(Excluded(group, times, Confidence.CONFIRMED if sound else Confidence.PROVISIONAL))
            if len(path.over) > 1:
                tests.append(Chance(p=min(1.0, 2 * float(stdtr(path.freedom, -path.log / path.error)))))
        else:
            unknown.append(group)
    excluded.sort(key=lambda entry: entry.times.value)
    return excluded, tied, unknown, over, tests, sound_ties
