"""Which retrainings stand beside each other, and what of a gain is due to which factor."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from transect.analysis.groups import Group, grouped
from transect.domain.axes.retrain import RetrainCell
from transect.stats.estimates import shows_shift
from transect.stats.noise import middle
from transect.stats.samples import Summary, summarise

RetrainGroup = Group[RetrainCell]

# Whose step others are measured in.
FRAMEWORK = "torch-eager"
STEP_TIME, SCORE = "step_time", "accuracy"
# What may be behind a gain, axes of a cell, and the level of each that others are set beside.
FACTORS = ("optimiser", "rate", "runtime")
_FIRST = ("sgd", "old", FRAMEWORK)
# A level of each, in that order.
Levels = tuple[str, ...]


def is_relay(group: RetrainGroup) -> bool:
    """Whether several runtimes take turns."""
    return len(group.cell.runtimes) > 1


def points(groups: Iterable[RetrainGroup]) -> list[list[RetrainGroup]]:
    """Part groups without turns by what they compute, in which runtimes are alike: the most runtimes and runs first."""
    by_point = grouped((group for group in groups if not is_relay(group)), lambda group: group.cell.changed(runtime=""))
    return [
        part
        for cell, part in sorted(
            by_point.items(), key=lambda item: (-len(item[1]), -sum(len(g.records) for g in item[1]), item[0].id)
        )
    ]


def sorted_by_time(groups: Iterable[RetrainGroup]) -> list[RetrainGroup]:
    """Return the groups that have a step time, the shortest first."""
    timed = [(group.counted(STEP_TIME), group) for group in groups]
    known = [(middle(values), group) for values, group in timed if values]
    return [group for _, group in sorted(known, key=lambda pair: (pair[0], pair[1].cell.id))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """Retrainings that differ in nothing but the factors.

    `scores` holds, by repeat, the score of every combination of levels: repeats that lack one are counted in
    `lacking`. A combination that no repeat has a score of stands in `absent`. Levels stand in the order of `levels`,
    the base of each factor first.
    """

    groups: tuple[RetrainGroup, ...]
    levels: Mapping[str, tuple[str, ...]]
    absent: tuple[RetrainGroup, ...]
    scores: Mapping[int, Mapping[Levels, float]]
    lacking: int

    @property
    def cell(self) -> RetrainCell:
        """A cell of it: what all have in common."""
        return self.groups[0].cell

    @property
    def combinations(self) -> list[Levels]:
        """Combinations of levels that have scores."""
        return sorted(next(iter(self.scores.values()), {}))

    def differences(self, moves: Iterable[tuple[Levels, Levels]]) -> tuple[float, ...]:
        """Return for each repeat by how much the score changes from one combination to another, the mean of the moves."""
        moves = list(moves)
        return tuple(statistics.fmean(scores[b] - scores[a] for a, b in moves) for scores in self.scores.values())


def designs(groups: Iterable[RetrainGroup]) -> Iterator[Design]:
    """Yield every design in which an optimiser or a rate is changed, and another factor too."""
    same = grouped((group for group in groups if not is_relay(group)), lambda group: group.cell.apart_from(*FACTORS))
    for members in same.values():
        scores = {_of(group.cell): group.by_repeat(SCORE) for group in members}
        levels = {factor: _ordered({of[place] for of in scores}, _FIRST[place]) for place, factor in enumerate(FACTORS)}
        if sum(len(several) > 1 for several in levels.values()) < 2:
            continue
        known = {combination: of for combination, of in scores.items() if of}
        repeats = set().union(*known.values())
        whole = sorted(repeat for repeat in repeats if all(repeat in of for of in known.values()))
        yield Design(
            groups=tuple(members),
            levels=levels,
            absent=tuple(group for group in members if _of(group.cell) not in known),
            lacking=len(repeats) - len(whole),
            scores={repeat: {combination: of[repeat] for combination, of in known.items()} for repeat in whole},
        )


def _ordered(levels: Iterable[str], first: str) -> tuple[str, ...]:
    """Sort the levels of a factor; SGD, the old rate, the framework come before the others."""
    return tuple(sorted(levels, key=lambda name: (name != first, name)))


def _of(cell: RetrainCell) -> Levels:
    return (cell.optimiser, cell.rate, cell.runtime)


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What a change of one factor does to the score, from `values` over the repeats.

    Each repeat gives the mean difference over all combinations of the other factors that both levels
    have: what a repeat's seed does to both sides drops out. `given` holds the levels of a factor of which
    not all took part; `apart` says that it was asked for with one level of another factor.
    """

    factor: str
    before: str
    after: str
    given: Mapping[str, tuple[str, ...]]
    values: tuple[float, ...]
    apart: bool = False

    @property
    def summary(self) -> Summary:
        """The median over the repeats, with its interval or range."""
        return summary_of(self.values)

    @property
    def shown(self) -> bool:
        """Whether the repeats show which way it goes."""
        return shows_shift(self.values)


def summary_of(values: Sequence[float]) -> Summary:
    """Summarise values of which there is one at least."""
    found = summarise(values)
    assert found is not None
    return found


def effects(design: Design) -> list[Effect]:
    """Return the effect of each factor against its base level, over all else, then with each optimiser."""
    found = [_effect(design, factor, after) for factor in FACTORS for after in design.levels[factor][1:]]
    optimisers = design.levels["optimiser"]
    for after in design.levels["rate"][1:] if len(optimisers) > 1 else ():
        found += [_effect(design, "rate", after, only=optimiser) for optimiser in optimisers]
    return [effect for effect in found if effect is not None]


def _effect(design: Design, factor: str, after: str, *, only: str | None = None) -> Effect | None:
    """Return a change's effect, `only` with one optimiser when given; None where nothing is paired."""
    place, before, known = FACTORS.index(factor), design.levels[factor][0], design.combinations
    moves = [
        (levels, changed)
        for levels in known
        if levels[place] == before and only in (None, levels[0])
        if (changed := _put(levels, place, after)) in known
    ]
    if not moves:
        return None
    took_part = {
        name: tuple(level for level in design.levels[name] if any(levels[n] == level for levels, _ in moves))
        for n, name in enumerate(FACTORS)
        if n != place
    }
    given = {name: part for name, part in took_part.items() if part != design.levels[name]}
    return Effect(
        factor=factor,
        before=before,
        after=after,
        given=given if only is None else {"optimiser": (only,)},
        values=design.differences(moves),
        apart=only is not None,
    )


def _put(levels: Levels, place: int, level: str) -> Levels:
    return *levels[:place], level, *levels[place + 1 :]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribution:
    """A gain between two combinations, and what of it is due to each factor that differs, by repeat.

    The parts of a repeat sum up to its gain; medians over repeats need not.
    """

    before: Levels
    after: Levels
    gains: tuple[float, ...]
    parts: Mapping[str, tuple[float, ...]]

    @property
    def gain(self) -> Summary:
        """The median gain over the repeats, with its interval or range."""
        return summary_of(self.gains)


def attribution(design: Design, before: Levels, after: Levels) -> Attribution | None:
    """Share the gain out to the factors: the Shapley value, repeat by repeat.

    None where a combination on the way is lacking.

    Each factor's part is its mean difference over all orders in which the factors could be changed one after the other
    (L. S. Shapley, "A value for n-person games", 1953), so that neither is favoured where they act together.
    """
    orders = list(permutations(n for n in range(len(FACTORS)) if before[n] != after[n]))
    moves: dict[int, list[tuple[Levels, Levels]]] = {place: [] for place in sorted(orders[0])}
    for order in orders:
        levels = before
        for place in order:
            changed = _put(levels, place, after[place])
            moves[place].append((levels, changed))
            levels = changed
    way = {levels for of_place in moves.values() for move in of_place for levels in move}
    if not way or not way <= set(design.combinations):
        return None
    parts = {FACTORS[place]: design.differences(of_place) for place, of_place in moves.items()}
    return Attribution(before=before, after=after, gains=design.differences([(before, after)]), parts=parts)
