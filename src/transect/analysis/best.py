"""Which of several groups is the best, as far as contrasts show: who is excluded, who ties, who is not known."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from statistics import median
from typing import Any, NamedTuple

from scipy.special import stdtr

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate
from transect.stats.samples import Spread
from transect.stats.verdicts import Answer, Chance, power


class Excluded(NamedTuple):
    """A group that is shown to take longer than the best, and how many times as long."""

    group: Group[Any]
    times: Estimate
    confidence: Confidence


@dataclass(frozen=True, kw_only=True, slots=True)
class Best:
    """The best of several groups: the fastest, or of those that tie with it the one with the fewest cores, then the
    simplest, then the one beside which most is known.

    `fastest` has the best estimate. `excluded` are shown to be worse than `first`, `tied` to be the same within the
    margin, and `unknown` may be as good. `contrasts` are those that it rests on, and `tests` stand for rivals that no
    contrast sets beside the first: one along several of them each, or of what is not known.
    """

    first: Group[Any]
    fastest: Group[Any]
    excluded: tuple[Excluded, ...] = ()
    tied: tuple[Group[Any], ...] = ()
    unknown: tuple[Group[Any], ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    tests: tuple[Chance, ...] = ()
    # How many times as long as the first each one takes that contrasts join to it, the first with 1.
    times: tuple[tuple[Group[Any], float], ...] = ()
    # Whether each tie rests on contrasts that may be sure.
    sound_ties: bool = True

    @property
    def open(self) -> tuple[Contrast, ...]:
        """The contrasts of those that are not known."""
        unknown = {id(group) for group in self.unknown}
        return tuple(made for made in self.contrasts if {id(made.group), id(made.base)} & unknown)

    def numbers(
        self, own: Callable[[Any], float | None], *, rate: bool = False
    ) -> tuple[tuple[Group[Any], float], ...]:
        """Return the first's own number, and of others that times the ratio which decides; `rate`: more is better.

        Medians of their own, all that others have, may be of other seeds.
        """
        value, joined = own(self.first), {id(group) for group, _ in self.times}
        made = [(group, value / times if rate else value * times) for group, times in self.times] if value else []
        return (*made, *((g, alone) for g in self.unknown if id(g) not in joined and (alone := own(g))))

    def without(self, groups: Sequence[Group[Any]]) -> Best:
        """Return who is best beside all but these groups."""
        gone = {id(group) for group in groups}
        return replace(
            self,
            excluded=tuple(entry for entry in self.excluded if id(entry.group) not in gone),
            tied=tuple(group for group in self.tied if id(group) not in gone),
            unknown=tuple(group for group in self.unknown if id(group) not in gone),
            contrasts=tuple(c for c in self.contrasts if not {id(c.group), id(c.base)} & gone),
            times=tuple((group, times) for group, times in self.times if id(group) not in gone),
        )


class _Path(NamedTuple):
    """How many times as long a group takes as another, along contrasts: logarithms, whose intervals add up."""

    log: float
    low: float
    high: float
    error: float
    freedom: float
    over: tuple[Contrast, ...]

    def and_then(self, edge: _Path) -> _Path:
        """Return the path that goes on along an edge."""
        return _Path(
            log=self.log + edge.log,
            low=self.low + edge.low,
            high=self.high + edge.high,
            error=self.error + edge.error,
            freedom=min(self.freedom, edge.freedom),
            over=(*self.over, *edge.over),
        )

    def chance(self, answer: Answer, margin: float) -> Chance:
        """Return the test of what several contrasts tell, as that of one tells (`transect.stats.verdicts`)."""
        beyond = (-abs(self.log), abs(self.log) - math.log1p(margin))
        p, p_other = (min(1.0, 2 * float(stdtr(self.freedom, log / self.error))) for log in beyond)
        if answer is Answer.SAME:
            p, p_other = p_other, p
        return Chance(p=p, p_other=p_other, claimed=answer is not Answer.OPEN, same=answer is Answer.SAME, rival=True)


_Edges = Mapping[int, Sequence[tuple[int, _Path]]]
_HERE = _Path(0.0, 0.0, 0.0, 0.0, math.inf, ())


def best(contrasts: Iterable[Contrast], groups: Sequence[Group[Any]], *, metric: str | None = None) -> Best | None:
    """Return the best of these groups along paths of contrasts; None without any group.

    What no path joins to the others is not known. `metric` ranks groups of which there is no contrast at all.
    """
    able = [group for group in groups if group.ok and not group.wrong]
    if not able:
        return None
    edges: dict[int, list[tuple[int, _Path]]] = defaultdict(list)
    mute: list[Contrast] = []
    for made in contrasts:
        if made.decision is None or made.barred:
            mute.append(made)
        else:
            a, b = id(made.group), id(made.base)
            edges[b].append((a, _edge(made, 1)))
            edges[a].append((b, _edge(made, -1)))
    every = {id(group): _paths(id(group), edges) for group in able}

    def place(group: Group[Any]) -> tuple[bool, float, int]:
        """Rank where paths start: of parts that nothing joins, that with the best value; without a metric, the largest."""
        known = [other for other in able if id(other) in every[id(group)]]
        values = [median(found) for other in known if metric and (found := other.counted(metric))]
        return len(known) > 1, -min(values, default=math.inf if metric else 0.0), len(known)

    paths = every[id(max(able, key=place))]
    joined = [group for group in able if id(group) in paths]
    if len(joined) < 2 and metric is not None:
        having = [group for group in able if group.values(metric)] or able
        joined = [min(having, key=lambda g: (median(g.counted(metric) or [0.0]), g.cell.id))]
    # A wide path may tell less than the direct contrast with another one, which shows who is slower.
    able_first = [group for group in joined if not _is_beaten(every[id(group)], joined)] or joined
    fastest = min(able_first, key=lambda group: (paths[id(group)].log if id(group) in paths else 0.0, group.cell.id))
    beside = _beside(fastest, fastest, able, edges, mute)
    # Of those that tie with it, not who is shown to be slower than another one that may be as fast.
    tied = (group for group in beside.tied if not _is_beaten(_paths(id(group), edges), beside.unknown))
    chosen = [beside, *(_beside(group, fastest, able, edges, mute) for group in tied)]
    return min(chosen, key=lambda made: (*_simple(made.first), len(made.unknown)))


def _is_beaten(paths: Mapping[int, _Path], others: Iterable[Group[Any]]) -> bool:
    return any((path := paths.get(id(other))) is not None and path.high < 0 for other in others)


def _simple(group: Group[Any]) -> tuple[int, int, int]:
    """Rank what is simpler first: the fewest cores, one process alone, at the defaults of its options."""
    cell = group.cell
    return cell.ranks * cell.threads, int(cell.get("strategy", "single") != "single"), len(cell.get("options") or ())


def _edge(made: Contrast, sign: int) -> _Path:
    """Return a contrast as seen from its base, or with -1 from its group."""
    assert made.decision is not None
    cost = made.cost if sign > 0 else made.cost.inverse
    return _Path(*cost.logs, made.decision.error, made.decision.freedom, (made,))


def _paths(start: int, edges: _Edges) -> dict[int, _Path]:
    """Return the path to each group that contrasts join to the first: the direct one, or else the narrowest interval."""
    found: dict[int, _Path] = {}
    waiting: list[tuple[bool, float, int, int, _Path]] = [(False, 0.0, 0, start, _HERE)]
    count = 0
    while waiting:
        _, _, _, point, path = heappop(waiting)
        if point in found:
            continue
        found[point] = path
        for following, edge in edges.get(point, ()):
            if following not in found:
                count += 1
                longer = path.and_then(edge)
                heappush(waiting, (bool(path.over), longer.high - longer.low, count, following, longer))
    return found


def _beside(
    first: Group[Any], fastest: Group[Any], groups: Sequence[Group[Any]], edges: _Edges, mute: Sequence[Contrast]
) -> Best:
    """Return who is excluded beside a group, who ties, who is not known, and what that rests on.

    `mute` contrasts say nothing: those beside the group are why another is not known.
    """
    paths = _paths(id(first), edges)
    excluded: list[Excluded] = []
    tied: list[Group[Any]] = []
    unknown: list[Group[Any]] = []
    over: dict[Contrast, None] = {}
    tests: list[Chance] = []
    sound_ties = True
    for group in groups:
        if group is first:
            continue
        path = paths.get(id(group))
        if path is None:
            unknown.append(group)
            direct = [made for made in mute if {id(made.group), id(made.base)} == {id(first), id(group)}]
            over |= dict.fromkeys(direct)
            if not direct:
                tests.append(Chance(p=1.0, claimed=False, rival=True))
            continue
        over |= dict.fromkeys(path.over)
        margin = path.over[0].comparison.margin
        sound = all(made.sound for made in path.over)
        answer = Answer.OPEN
        if max(-path.low, path.high) <= math.log1p(margin):
            answer = Answer.SAME
            tied.append(group)
            sound_ties &= sound
        elif path.low > 0:
            answer = Answer.DIFFERENT
            ends = {"low": power(path.low), "high": power(path.high)}
            # Intervals that add up are at least as sure as the least sure of them.
            level = min(made.ratio.level for made in path.over)
            times = Estimate(value=power(path.log), **ends, spread=Spread.INTERVAL, level=level)
            excluded.append(Excluded(group, times, Confidence.CONFIRMED if sound else Confidence.PROVISIONAL))
        else:
            unknown.append(group)
        if len(path.over) > 1:
            tests.append(path.chance(answer, margin))
    return Best(
        first=first,
        fastest=fastest,
        excluded=tuple(sorted(excluded, key=lambda entry: entry.times.value)),
        tied=tuple(tied),
        unknown=tuple(unknown),
        contrasts=tuple(over),
        tests=tuple(tests),
        times=tuple((group, power(paths[id(group)].log)) for group in groups if id(group) in paths),
        sound_ties=sound_ties,
    )
