"""Contrasts: two groups that differ in one thing, compared by the metric that decides.

A study plans its contrasts as pairs before it runs (`transect.domain.pairs`). Their runs are paired by repeat, turn by
turn where the two took turns (`transect.analysis.turns`), and the variance of each is moderated by those of all of its
kind. So one class says for every finding what was compared, how it ended, and with which interval.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import permutations
from typing import Any

from transect.analysis.best import Best, best
from transect.analysis.contrast import Contrast
from transect.analysis.entries import AnyRecord, Key
from transect.analysis.groups import Floors, Group, group_records
from transect.analysis.serving import RUN, WHOLE, measure_of
from transect.analysis.side_by_side import apart, incomplete
from transect.analysis.turns import Paired, PairNoise, paired
from transect.domain.metrics import metric
from transect.domain.pairs import Pair, joined
from transect.domain.record import Cause, Status
from transect.domain.until import MIN_RUNS
from transect.stats.comparisons import compare, judged
from transect.stats.estimates import paired_ratio
from transect.stats.samples import summarise
from transect.stats.verdicts import LEVEL, Answer, Decision, corrected, decide_logs, level_of_all

__all__ = ["Best", "Contrast", "Contrasts", "all_joined", "best", "contrast", "pair_half_widths", "pending_of"]

# What others take from a machine changes what these say: a slower second core is the others' doing.
_OF_CORES = ("threads", "nodes", "ranks_per_node")


def contrast(
    group: Group[Any],
    base: Group[Any],
    floors: Floors,
    metric: str,
    *,
    varies: str,
    by: str | None = None,
    of: Callable[[Group[Any]], list[float]] | None = None,
    candidates: int = 2,
    asked: bool = False,
) -> Contrast | None:
    """Compare two groups by a metric; None where either has none.

    Runs are paired by turns or seeds where they have any, or as neighbours (`by="run"`). `of` gives values that stand for
    the metric, and are not paired. `candidates`: of how many groups one of the two was chosen because it is the best.
    """
    told = {"group": group, "base": base, "varies": varies, "candidates": candidates, "asked": asked}
    found = None if of else paired(group, base, metric)
    if found is not None and (found.by != "run" or by == "run"):
        return _of_pairs(told, found, floors)
    return _of_runs(told, metric, floors, of)


def all_joined(
    pairs: Iterable[Contrast], groups: Sequence[Group[Any]], floors: Floors, metric: str, *, varies: str
) -> list[Contrast]:
    """Return planned contrasts, and beside the first of the groups each that none joins to another.

    What nobody planned was chosen because it is the best of so many, and is at most likely.
    """
    made = [*pairs]
    planned = {id(side) for pair in made for side in (pair.group, pair.base)}
    more = (
        contrast(group, groups[0], floors, metric, varies=varies, by="run", candidates=len(groups))
        for group in groups[1:]
        if not {id(group), id(groups[0])} <= planned
    )
    return [*made, *(pair for pair in more if pair is not None)]


def _of_pairs(told: dict[str, Any], found: Paired, floors: Floors) -> Contrast | None:
    group, base, logs = told["group"], told["base"], [*found.logs.values()]
    noise, times = floors.pair_noise.of(group, found) if floors.pair_noise else None, 1.0
    if noise is None and found.by != "turn":
        floor = floors.paired(group.cell.stage, group.cell.workload, found.metric, group.kind)
        noise, times = floor.noise if floor else None, 2.0
    sides = [summarise([*values.values()]) for values in found.values]
    left, right = sides[0] or group.summary(found.metric), sides[1] or base.summary(found.metric)
    if left is None or right is None:
        return None
    each = {"turn": "launches that took turns", "seed": "seeds, each with itself", "run": "pairs of runs"}[found.by]
    seen = paired_ratio(logs)
    comparison = judged(
        left,
        right,
        decide_logs(logs, noise, margin=floors.margin, times=times),
        direction=metric(found.metric).direction,
        of=f"{len(logs)} {each}",
        ratio=seen,
        margin=floors.margin,
    )
    lost = f"{found.lost} of their runs have no {found.metric}" if found.lost else ""
    made = Contrast(
        **told,
        metric=found.metric,
        by=found.by,
        pairs=len(logs),
        left_out=found.left_out,
        quiet=found.quiet,
        comparison=comparison,
        seen=seen,
    )
    return _doubted(made, lost, (incomplete if found.by == "turn" else apart)((group, base)), disturbed=found.disturbed)


def _of_runs(
    told: dict[str, Any], name: str, floors: Floors, of: Callable[[Group[Any]], list[float]] | None
) -> Contrast | None:
    group, base = told["group"], told["base"]
    values = of or (lambda side: side.values(name))
    sides = [values(side) for side in (group, base)]
    still = [tuple(r for r in side.ok if not r.details.get("disturbed")) for side in (group, base)]
    quiet = [values(replace(side, ok=ok)) for side, ok in zip((group, base), still, strict=True)]
    enough = all(len(left) >= min(MIN_RUNS, len(side)) for left, side in zip(quiet, sides, strict=True))
    kept = quiet if enough else sides
    floor = floors.get(group.cell.stage, group.cell.workload, name, group.kind)
    comparison = compare(*kept, direction=metric(name).direction, floor=floor)
    if comparison is None:
        return None
    made = Contrast(
        **told,
        metric=name,
        by="",
        pairs=min(map(len, kept)),
        left_out=sum(map(len, sides)) - sum(map(len, kept)),
        quiet=enough,
        comparison=comparison,
    )
    return _doubted(made, comparison.doubt, apart((group, base)), disturbed=not any(quiet))


def _doubted(made: Contrast, *doubts: str, disturbed: bool) -> Contrast:
    """Return it with what makes it no more than likely, or bars it; `disturbed`: each of its runs was."""
    few = "" if made.pairs >= MIN_RUNS else f"{made.pairs} of the {MIN_RUNS} runs a side that a verdict takes"
    loud = "" if made.quiet else "other programs ran during too many of these runs"
    barred = "processes share cores" if made.over_subscribed else ""
    if disturbed and any(made.group.cell.get(axis) != made.base.cell.get(axis) for axis in _OF_CORES):
        barred = barred or "other programs used the cores during every run"
    return replace(made, barred=barred, doubt="; ".join(dict.fromkeys(filter(None, (few, loud, *doubts)))))


class Contrasts:
    """The planned pairs of a study, each evaluated once, in the order of the plan."""

    def __init__(
        self, pairs: Iterable[Pair], groups: Iterable[Group[Any]], floors: Floors, pending: Collection[Key] = ()
    ) -> None:
        pairs, every = list(pairs), {(group.cell.stage, group.cell.id): group for group in groups}
        points = {point: group for point, group in every.items() if group.ok and not group.wrong}
        self._killed = [
            (pair, every[point])
            for pair in pairs
            for point in pair.points
            if point in every and not every[point].ok and _was_killed(every[point])
        ]
        # Asked pairs without a right result on a side, and what it lacks is not that this machine cannot run it.
        self.lacking = [
            pair
            for pair in dict.fromkeys(pair for pair in pairs if pair.asked)
            if (absent := [point for point in pair.points if point not in points])
            and not all(point in every and _was_skipped(every[point]) for point in absent)
        ]
        whole = _whole(pairs, points)
        sides = [
            (pair, points[one], points[other], WHOLE if pair.metric == RUN and one in whole else pair.metric)
            for pair in pairs
            if (one := pair.points[0]) in points and (other := pair.points[1]) in points
        ]
        evidence = {
            (id(group), id(base), found.metric): (group, base, found)
            for _, group, base, name in sides
            if (found := paired(group, base, name)) is not None
        }
        floors.pair_noise = PairNoise(evidence.values())
        made = [
            (pair, single)
            for pair, g, b, name in sides
            if (single := contrast(g, b, floors, name, varies=_words(pair.varies), by="run", asked=pair.asked))
        ]
        # By one metric two groups are compared once, whatever rules that answers.
        once: dict[tuple[int, int, str], Contrast] = {}
        for _, single in made:
            key = id(single.group), id(single.base), single.metric
            if key not in once or single.asked:
                once[key] = single
        final = _beside_others(once, pending)
        self._made = [(pair, final[id(single.group), id(single.base), single.metric]) for pair, single in made]

    def __iter__(self) -> Iterator[Contrast]:
        return iter(dict.fromkeys(made for _, made in self._made))

    def by_pair(self) -> Iterator[tuple[Pair, Contrast]]:
        """Yield each with the pair that was planned."""
        return iter(self._made)

    def of(self, rule: str, workload: str | None = None, *, varies: str | None = None) -> list[Contrast]:
        """Return the contrasts of the pairs that answer a rule, of one workload, or that differ in one thing, when given."""
        found = (
            made
            for pair, made in self._made
            if any(fnmatchcase(known, rule) for known in pair.rules)
            and workload in (None, made.group.cell.workload)
            and varies in (None, made.varies)
        )
        return [*dict.fromkeys(found)]

    def killed(self, rule: str, workload: str | None) -> str:
        """Return the id of a cell, of pairs that answer a rule, that gave no result because it was killed; or nothing."""
        return next(
            (
                group.cell.id
                for pair, group in self._killed
                if any(fnmatchcase(known, rule) for known in pair.rules) and workload in (None, group.cell.workload)
            ),
            "",
        )


def _whole(pairs: Iterable[Pair], points: Mapping[Key, Group[Any]]) -> set[Key]:
    """Return the points of which whole calls are compared: those that pairs join to one that does other work inside of Run."""
    members: dict[Key, list[Key]] = defaultdict(list)
    for point, first in joined(pair for pair in pairs if pair.metric == RUN).items():
        if point in points:
            members[first].append(point)
    return {one for every in members.values() if measure_of(points[p] for p in every) == WHOLE for one in every}


def _was_skipped(group: Group[Any]) -> bool:
    return all(record.status is Status.SKIPPED for record in group.records)


def _was_killed(group: Group[Any]) -> bool:
    return any(record.cause in (Cause.KILLED, Cause.SCHEDULER) for record in group.records)


def pending_of(pending: Iterable[Key], stages: Collection[str], workload: str | None) -> int:
    """Count the cells of these stages, or of any without one, and of a workload that are still to come."""
    return sum(
        (not stages or stage in stages) and (workload is None or cell.startswith(f"{workload}."))
        for stage, cell in pending
    )


_Once = dict[tuple[int, int, str], Contrast]


def _beside_others(made: _Once, pending: Collection[Key]) -> _Once:
    """Return them with what makes them no more than likely: all others that are asked for, and cells still to come."""

    def decisions(of: _Once, *, asked: bool) -> dict[tuple[int, int, str], Decision]:
        return {k: s.decision for k, s in of.items() if s.asked is asked and not s.barred and s.decision is not None}

    level = {asked: level_of_all([*decisions(made, asked=asked).values()]) for asked in (True, False)}
    made = {key: single.at(level[single.asked]) for key, single in made.items()}
    # Of the test that the answer at this level rests on.
    asked = decisions(made, asked=True)
    p = dict(zip(asked, corrected([*asked.values()], [made[key].n_comparisons for key in asked]), strict=True))
    final = {}
    for key, single in made.items():
        doubts = [single.doubt]
        if single.answer is not Answer.OPEN and (worst := p.get(key, 0.0)) > LEVEL:
            doubts.append(f"as one of {len(asked)} comparisons p = {worst:.2g} (Holm), which may be chance")
        if waiting := pending_of(pending, {single.group.cell.stage}, single.group.cell.workload):
            doubts.append(f"{waiting} of its runs and those beside it still to come, or not readable")
        final[key] = replace(single, doubt="; ".join(filter(None, doubts)))
    return final


# What two differ in, in the field's words, by the axis that says most of it: the first of these.
_NAMES = {
    "ranks_per_node": "ranks",
    "nodes": "ranks",
    "runtime": "runtime",
    "options.implementation": "kernel",
    "options.compiler": "compiler",
    "options.ppwi": "poses per work-item",
    "options.pin": "pinning",
    "options": "settings",
}


def _words(axes: Sequence[str]) -> str:
    first = next((name for axis, name in _NAMES.items() if axis in axes and axis != "options"), "")
    return first or ", ".join(dict.fromkeys(_NAMES.get(axis, axis.removeprefix("options.")) for axis in axes))


def pair_half_widths(pairs: Iterable[Pair], records: Iterable[AnyRecord]) -> Mapping[Pair, tuple[float, int]]:
    """Return for each pair that has runs half the width of its log ratio's interval, 0 if it ends early, and how many runs."""
    groups = group_records(records)
    made = Contrasts(pairs, groups, Floors(groups))
    early = ends_early([single for _, single in made.by_pair()])
    return {
        pair: (0.0 if id(single) in early else single.at(LEVEL).half_width, single.pairs)
        for pair, single in made.by_pair()
    }


def ends_early(made: Sequence[Contrast]) -> set[int]:
    """Return by id those that need no more repeats: apart beyond doubt, as are whom they set beside the same base.

    Two rivals that no pair joins are compared along their pairs with that base, for which both have to be narrow.
    """
    at_base: dict[tuple[int, str], list[tuple[Group[Any], Contrast, float]]] = defaultdict(list)
    for single in made:
        if single.decision is not None:
            log = math.log(single.decision.ratio)
            at_base[id(single.base), single.metric].append((single.group, single, log))
            at_base[id(single.group), single.metric].append((single.base, single, -log))
    direct = {frozenset((id(single.group), id(single.base))) for single in made}
    wide = {
        id(mine)
        for beside in at_base.values()
        for (side, mine, log), (rival, other, its) in permutations(beside, 2)
        if side is not rival
        and frozenset((id(side), id(rival))) not in direct
        and abs(log - its) <= mine.at(LEVEL).half_width + other.at(LEVEL).half_width
    }
    return {id(single) for single in made if single.apart_beyond_doubt and id(single) not in wide}
