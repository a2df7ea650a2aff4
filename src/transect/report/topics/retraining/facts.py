"""Which retrainings stand beside each other, and what of a gain is due to which factor."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial

from transect.analysis.groups import Group, grouped
from transect.domain.axes.retrain import RetrainCell
from transect.stats.noise import middle
from transect.stats.samples import Summary, summarise

RetrainGroup = Group[RetrainCell]

# Whose step others are measured in.
FRAMEWORK = "torch-eager"
STEP_TIME = "step_time"
# What may be behind a gain: axes of a cell.
FACTORS = ("optimiser", "rate", "runtime")
# A level of each, in that order.
Levels = tuple[str, str, str]


def is_relay(group: RetrainGroup) -> bool:
    """Whether several runtimes take turns."""
    return len(group.cell.runtimes) > 1


def point(group: RetrainGroup) -> RetrainCell:
    """Return the cell without its runtime: groups that share it compute the same path."""
    return group.cell.changed(runtime="")


def points(groups: Iterable[RetrainGroup]) -> list[list[RetrainGroup]]:
    """Part groups without turns by what they compute: the point of most runtimes and runs first."""
    by_point = grouped((group for group in groups if not is_relay(group)), point)
    return sorted(
        by_point.values(), key=lambda part: (-len(part), -sum(len(g.records) for g in part), point(part[0]).id)
    )


def sorted_by_time(groups: Iterable[RetrainGroup]) -> list[RetrainGroup]:
    """Return the groups that have a step time, the shortest first."""
    timed = [(group.counted(STEP_TIME), group) for group in groups]
    known = [(middle(values), group) for values, group in timed if values]
    return [group for _, group in sorted(known, key=lambda pair: (pair[0], pair[1].cell.id))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """Retrainings that differ in nothing but the factors.

    `scores` holds, by repeat, the score of every combination of levels in `combinations`: repeats that
    lack one are counted in `lacking`. A combination that no repeat has a score of stands in `absent`.
    Levels stand in the order of `levels`, the base of each factor first.
    """

    groups: tuple[RetrainGroup, ...]
    levels: Mapping[str, tuple[str, ...]]
    combinations: frozenset[Levels]
    absent: tuple[RetrainGroup, ...]
    scores: Mapping[int, Mapping[Levels, float]]
    lacking: int

    @property
    def cell(self) -> RetrainCell:
        """A cell of it: what all have in common."""
        return self.groups[0].cell


def _levels(groups: Sequence[RetrainGroup], factor: str) -> tuple[str, ...]:
    """Return the levels of a factor: the old rate, SGD, the framework before the others."""
    found = sorted({str(getattr(group.cell, factor)) for group in groups})
    first = {"rate": "old", "optimiser": "sgd", "runtime": FRAMEWORK}[factor]
    return tuple(sorted(found, key=lambda name: (name != first, name)))


def designs(groups: Iterable[RetrainGroup], metric: str) -> Iterator[Design]:
    """Yield every design in which an optimiser or a rate is changed, and another factor too."""
    same = grouped((group for group in groups if not is_relay(group)), lambda group: group.cell.apart_from(*FACTORS))
    for members in same.values():
        levels = {factor: _levels(members, factor) for factor in FACTORS}
        several = [factor for factor in FACTORS if len(levels[factor]) > 1]
        if len(several) < 2:
            continue
        by_levels = {_of(group.cell): group.by_repeat(metric) for group in members}
        known = frozenset(combination for combination, scores in by_levels.items() if scores)
        repeats = {repeat for combination in known for repeat in by_levels[combination]}
        whole = sorted(r for r in repeats if all(r in by_levels[combination] for combination in known))
        yield Design(
            groups=tuple(members),
            levels=levels,
            combinations=known,
            absent=tuple(group for group in members if _of(group.cell) not in known),
            lacking=len(repeats) - len(whole),
            scores={r: {combination: by_levels[combination][r] for combination in known} for r in whole},
        )


def _of(cell: RetrainCell) -> Levels:
    return (cell.optimiser, cell.rate, cell.runtime)


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What a change of one factor does to the score; `summary` is over the repeats.

    Each repeat gives the mean difference over all combinations of the other factors that both levels
    have, `values`: what a repeat's seed does to both sides drops out. `given` holds the levels of a factor of which
    not all took part; `apart` says that it was asked for with one level of another factor.
    """

    factor: str
    before: str
    after: str
    given: Mapping[str, tuple[str, ...]]
    summary: Summary
    values: tuple[float, ...] = ()
    apart: bool = False

    @property
    def shown(self) -> bool:
        """Whether 0 lies outside of the interval, or range of two repeats and more."""
        alone = self.summary.count == 1
        return not alone and not self.summary.low <= 0 <= self.summary.high


def effects(design: Design) -> list[Effect]:
    """Return the effect of each factor against its base level, over all else, then with each optimiser."""
    found = []
    for factor in FACTORS:
        base, *others = design.levels[factor]
        found += [_effect(design, factor, base, after) for after in others]
    optimisers, rates = design.levels["optimiser"], design.levels["rate"]
    for after in rates[1:] if len(optimisers) > 1 else ():
        found += [_effect(design, "rate", rates[0], after, only=optimiser) for optimiser in optimisers]
    return [effect for effect in found if effect is not None]


def _effect(design: Design, factor: str, before: str, after: str, *, only: str | None = None) -> Effect | None:
    """Return a change's effect, `only` with one optimiser when given; None where nothing is paired."""
    place = FACTORS.index(factor)
    pairs = [
        (levels, changed)
        for levels in sorted(design.combinations)
        if levels[place] == before and only in (None, levels[0])
        for changed in [_put(levels, place, after)]
        if changed in design.combinations
    ]
    if not pairs or not design.scores:
        return None
    values = [
        statistics.fmean(scores[changed] - scores[levels] for levels, changed in pairs)
        for scores in design.scores.values()
    ]
    given: dict[str, tuple[str, ...]] = {} if only is None else {"optimiser": (only,)}
    for n, name in enumerate(FACTORS) if only is None else ():
        present = {levels[n] for levels, _ in pairs}
        took_part = tuple(level for level in design.levels[name] if level in present)
        if n != place and took_part != design.levels[name]:
            given[name] = took_part
    summary = summarise(values)
    assert summary is not None
    return Effect(
        factor=factor,
        before=before,
        after=after,
        given=given,
        summary=summary,
        values=tuple(values),
        apart=only is not None,
    )


def _put(levels: Levels, place: int, level: str) -> Levels:
    first, second, third = (level if n == place else current for n, current in enumerate(levels))
    return first, second, third


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribution:
    """A gain between two combinations, and what of it is due to each factor that differs.

    The parts of a repeat sum up to its gain; medians over repeats need not. `gains` has each repeat's.
    """

    before: Levels
    after: Levels
    gain: Summary
    parts: Mapping[str, Summary]
    gains: tuple[float, ...] = ()


def attribution(design: Design, before: Levels, after: Levels) -> Attribution | None:
    """Share the gain out to the factors: the Shapley value, repeat by repeat.

    None where a combination on the way is lacking.

    Each factor's part is its mean difference over all orders in which the factors could be changed one after the other
    (L. S. Shapley, "A value for n-person games", 1953), so that neither is favoured where they act together.
    """
    differing = [n for n, name in enumerate(FACTORS) if before[n] != after[n]]
    way = {_changed(before, after, c) for n in range(4) for c in combinations(differing, n)}
    if not way <= design.combinations:
        return None
    gains = [scores[after] - scores[before] for scores in design.scores.values()]
    gain = summarise(gains)
    if gain is None:
        return None
    parts = {}
    for place in differing:
        values = [_shapley(scores, before, after, place, differing) for scores in design.scores.values()]
        summary = summarise(values)
        assert summary is not None
        parts[FACTORS[place]] = summary
    return Attribution(before=before, after=after, gain=gain, parts=parts, gains=tuple(gains))


def _shapley(scores: Mapping[Levels, float], before: Levels, after: Levels, place: int, differing: list[int]) -> float:
    remaining = [n for n in differing if n != place]
    orders = factorial(len(differing))
    total = 0.0
    for size in range(len(remaining) + 1):
        weight = factorial(size) * factorial(len(remaining) - size) / orders
        for changed in combinations(remaining, size):
            without = _changed(before, after, changed)
            total += weight * (scores[_changed(before, after, (*changed, place))] - scores[without])
    return total


def _changed(before: Levels, after: Levels, places: Iterable[int]) -> Levels:
    chosen = set(places)
    first, second, third = (after[n] if n in chosen else before[n] for n in range(len(FACTORS)))
    return first, second, third
