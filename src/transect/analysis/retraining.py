"""Which retrainings stand beside each other, and what of a gain is due to which factor."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import factorial

from transect.analysis.comparisons import Comparison, compare
from transect.analysis.estimates import Estimate, ratio_of
from transect.analysis.groups import Floors, Group, grouped
from transect.analysis.statistics import NoiseFloor, Summary, summarise
from transect.stages.retrain.cell import RetrainCell

__all__ = [
    "FACTORS", "FRAMEWORK", "PEERS", "STEP_TIME", "Attribution", "Design", "Effect", "RetrainGroup", "StepRatio", "attribution",
    "designs", "effects", "is_relay", "point", "points", "sorted_by_time", "step_ratio",
]  # fmt: skip

RetrainGroup = Group[RetrainCell]

# Whose step others are measured in, and all that train without the portable step.
FRAMEWORK = "torch-eager"
PEERS = (FRAMEWORK, "torch-compile", "ort-training")
STEP_TIME = "step_time"
# What may be behind a gain: axes of a cell.
FACTORS = ("optimiser", "rate", "runtime")


def is_relay(group: RetrainGroup) -> bool:
    """Whether several runtimes take turns."""
    return len(group.cell.runtimes) > 1


def point(group: RetrainGroup) -> RetrainCell:
    """Return the cell without its runtime: groups that share it compute the same path."""
    return group.cell.changed(runtime="")


def points(groups: Iterable[RetrainGroup]) -> list[list[RetrainGroup]]:
    """Part groups without turns by what they compute: the point of most runtimes and runs first."""
    own = grouped((group for group in groups if not is_relay(group)), point)
    return sorted(own.values(), key=lambda one: (-len(one), -sum(len(g.records) for g in one),
                                                 point(one[0]).id))  # fmt: skip


def sorted_by_time(groups: Iterable[RetrainGroup]) -> list[RetrainGroup]:
    """Return the groups that have a step time, the shortest first."""
    timed = [(group.values(STEP_TIME), group) for group in groups]
    known = [(statistics.median(values), group) for values, group in timed if values]
    return [group for _, group in sorted(known, key=lambda one: (one[0], one[1].cell.id))]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRatio:
    """A runtime's step time over another's; `comparison` is seen from the group."""

    group: RetrainGroup
    other: RetrainGroup
    ratio: Estimate
    comparison: Comparison
    floor: NoiseFloor | None


def step_ratio(group: RetrainGroup, other: RetrainGroup, floors: Floors) -> StepRatio | None:
    """Set a group's step time beside another's; None when either has none."""
    own, base = group.values(STEP_TIME), other.values(STEP_TIME)
    floor = floors.get(group.cell.stage, group.cell.workload, STEP_TIME)
    ratio, comparison = ratio_of(own, base), compare(own, base, floor=floor)
    if ratio is None or comparison is None:
        return None
    return StepRatio(group=group, other=other, ratio=ratio, comparison=comparison, floor=floor)


# A level of each factor, in the order of FACTORS.
Levels = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """Retrainings that differ in nothing but the factors, with all combinations of their levels.

    `scores` holds, by repeat, the score of every combination: repeats that lack one are in `lacking`.
    Levels stand in the order of `levels`, the base of each factor first.
    """

    groups: tuple[RetrainGroup, ...]
    levels: Mapping[str, tuple[str, ...]]
    scores: Mapping[int, Mapping[Levels, float]]
    lacking: int

    @property
    def cell(self) -> RetrainCell:
        """A cell of it: what all have in common."""
        return self.groups[0].cell


def _levels(groups: Sequence[RetrainGroup], factor: str) -> tuple[str, ...]:
    """Return the levels of a factor: the old rate, the workload's first optimiser, the framework first."""
    found = sorted({str(getattr(group.cell, factor)) for group in groups})
    first = {"rate": "old", "optimiser": "sgd", "runtime": FRAMEWORK}[factor]
    return tuple(sorted(found, key=lambda name: (name != first, name)))


def designs(groups: Iterable[RetrainGroup], metric: str) -> Iterator[Design]:
    """Yield every full factorial design of two factors or more that has two levels or more."""
    same = grouped(
        (group for group in groups if not is_relay(group)),
        lambda group: group.cell.changed(**dict.fromkeys(FACTORS, "")),
    )
    for members in same.values():
        levels = {factor: _levels(members, factor) for factor in FACTORS}
        wanted = [(o, r, t) for o, r, t in product(*levels.values())]
        if sum(len(one) > 1 for one in levels.values()) < 2 or len(wanted) != len(members):
            continue
        by_levels = {_of(group.cell): group.by_repeat(metric) for group in members}
        repeats = {record.cell.repeat for group in members for record in group.records}
        whole = sorted(r for r in repeats if all(r in by_levels[one] for one in wanted))
        yield Design(
            groups=tuple(members), levels=levels, lacking=len(repeats) - len(whole),
            scores={r: {one: by_levels[one][r] for one in wanted} for r in whole},
        )  # fmt: skip


def _of(cell: RetrainCell) -> Levels:
    return (cell.optimiser, cell.rate, cell.runtime)


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What a change of one factor does to the score; `summary` is over the repeats.

    Each repeat gives the mean difference over all combinations of the other factors, or over those
    with the levels in `given`: what a repeat's seed does to both sides drops out.
    """

    factor: str
    before: str
    after: str
    given: Mapping[str, str]
    summary: Summary

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
        for after in others:
            found.append(_effect(design, factor, base, after, {}))
    optimisers = design.levels["optimiser"]
    for after in design.levels["rate"][1:] if len(optimisers) > 1 else ():
        for optimiser in optimisers:
            given = {"optimiser": optimiser}
            found.append(_effect(design, "rate", design.levels["rate"][0], after, given))
    return [one for one in found if one is not None]


def _effect(
    design: Design, factor: str, before: str, after: str, given: Mapping[str, str]
) -> Effect | None:
    place = FACTORS.index(factor)
    rest = [
        [given[name]] if name in given else design.levels[name]
        for name in FACTORS
        if name != factor
    ]

    def at(scores: Mapping[Levels, float], level: str) -> float:
        chosen = []
        for others in product(*rest):
            levels = [*others]
            levels.insert(place, level)
            chosen.append(scores[(levels[0], levels[1], levels[2])])
        return statistics.fmean(chosen)

    summary = summarise(at(one, after) - at(one, before) for one in design.scores.values())
    if summary is None:
        return None
    return Effect(factor=factor, before=before, after=after, given=given, summary=summary)


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribution:
    """A gain between two combinations, and what of it is due to each factor that differs.

    The parts of a repeat sum up to its gain; medians over repeats need not.
    """

    before: Levels
    after: Levels
    gain: Summary
    parts: Mapping[str, Summary]


def attribution(design: Design, before: Levels, after: Levels) -> Attribution | None:
    """Share the gain out to the factors: the Shapley value, repeat by repeat. None without repeats.

    Each factor's part is its mean difference over all orders in which the factors could be changed one
    after the other (L. S. Shapley, "A value for n-person games", 1953), so that neither is favoured
    where they act together.
    """
    differing = [n for n, name in enumerate(FACTORS) if before[n] != after[n]]
    gains = [one[after] - one[before] for one in design.scores.values()]
    gain = summarise(gains)
    if gain is None:
        return None
    parts = {}
    for place in differing:
        values = [_shapley(one, before, after, place, differing) for one in design.scores.values()]
        summary = summarise(values)
        assert summary is not None
        parts[FACTORS[place]] = summary
    return Attribution(before=before, after=after, gain=gain, parts=parts)


def _shapley(
    scores: Mapping[Levels, float], before: Levels, after: Levels, place: int, differing: list[int]
) -> float:
    others = [one for one in differing if one != place]
    orders = factorial(len(differing))
    total = 0.0
    for size in range(len(others) + 1):
        weight = factorial(size) * factorial(len(others) - size) / orders
        for changed in combinations(others, size):
            without = _changed(before, after, changed)
            total += weight * (scores[_changed(before, after, (*changed, place))] - scores[without])
    return total


def _changed(before: Levels, after: Levels, places: Iterable[int]) -> Levels:
    chosen = set(places)
    first, second, third = (after[n] if n in chosen else before[n] for n in range(len(FACTORS)))
    return first, second, third
