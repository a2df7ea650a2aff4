"""A study's points into the pairs that it compares, before anything runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from transect.domain.cell import Cell
from transect.domain.pairs import Pair, PairRule, joined
from transect.domain.until import MIN_RUNS
from transect.planning.stage import STAGES

# Of an axis that is one option of the axis `options`.
_OPTION = "options."


class StagePairs:
    """The pairs of one stage. Points are cells without repeat; those that asked pairs join take turns."""

    def __init__(self, made: Iterable[tuple[Cell, Cell, Pair]] = ()) -> None:
        self._made = list(made)
        self._asked: dict[Cell, list[Pair]] = defaultdict(list)
        first = joined(pair for pair in self if pair.asked)
        self._heat: dict[Cell, str] = {}
        for *points, pair in self._made:
            for point in points if pair.asked else ():
                self._asked[point].append(pair)
                self._heat[point] = first[point.stage, point.id][1]

    def __iter__(self) -> Iterator[Pair]:
        return (pair for _, _, pair in self._made)

    def asked(self, cell: Cell) -> Sequence[Pair]:
        """Return the pairs in which a cell is, whatever its repeat, and which a question asks for."""
        return self._asked.get(cell.without_repeat(), ())

    def heat(self, cell: Cell) -> str:
        """Return what a cell shares with all to which those pairs join it, in whichever repeat; empty where none does."""
        return self._heat.get(cell.without_repeat(), "")

    def with_repeats(self, amounts: Mapping[Cell, int]) -> StagePairs:
        """Return them with those not asked that will not have the runs that a verdict takes."""
        return StagePairs(
            (cell, base, pair if min(amounts[cell], amounts[base]) >= MIN_RUNS else replace(pair, asked=False))
            for cell, base, pair in self._made
        )


def make_pairs(rules: Iterable[PairRule], points: Iterable[Cell], asks: Callable[[Sequence[str]], bool]) -> StagePairs:
    """Return what rules compare among the points of a stage, in the order of the study.

    `asks`: whether the study asks for any of these rules of the report.
    """
    points = list(points)
    made: dict[tuple[str, ...], tuple[Cell, Cell, Pair]] = {}
    for rule in rules:
        asked = asks(rule.rules)
        for cell, base in _matches(rule, points):
            key = (*sorted((cell.id, base.id)), rule.metric)
            if key in made:
                first, second, known = made[key]
                names = dict.fromkeys((*known.rules, *rule.rules))
                made[key] = first, second, replace(known, rules=(*names,), asked=known.asked or asked)
                continue
            pair = Pair(
                stage=cell.stage,
                cell=cell.id,
                base=base.id,
                metric=rule.metric,
                varies=(*_differing(cell, base, rule.varies),),
                rules=rule.rules,
                asked=asked,
            )
            made[key] = cell, base, pair
    return StagePairs(made.values())


def pairs_among(cells: Iterable[Cell], asks: Callable[[Sequence[str]], bool]) -> list[Pair]:
    """Return the pairs among cells of any stages, for results whose plan holds none. Each repeat is a cell."""
    amounts = Counter(cell.without_repeat() for cell in cells)
    of_stage: dict[str, list[Cell]] = defaultdict(list)
    for point in amounts:
        of_stage[point.stage].append(point)
    return [
        pair
        for name, points in of_stage.items()
        if name in STAGES
        for pair in make_pairs(STAGES.get(name).pairs, points, asks).with_repeats(amounts)
    ]


def _matches(rule: PairRule, points: Iterable[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Yield each point that a rule compares, with its base."""
    groups: dict[Hashable, list[Cell]] = defaultdict(list)
    for point in points:
        if has(point, rule.both) and not (rule.neither and has(point, rule.neither)):
            groups[_shared(point, rule.varies)].append(point)
    for members in groups.values():
        base = {rule.first: (_value(members[0], rule.first),)} if rule.first else rule.base
        if base:
            bases = [point for point in members if has(point, base)]
            others = [point for point in members if not has(point, base) and has(point, rule.side)]
            found = [(cell, _nearest(cell, bases, rule)) for cell in others if bases]
        else:
            found = [(cell, base) for base, cell in combinations(members, 2)]
        yield from (pair for pair in found if not rule.differ or any(_differing(*pair, rule.differ)))


def _nearest(cell: Cell, bases: Sequence[Cell], rule: PairRule) -> Cell:
    """Return the base that differs in the fewest axes."""
    return min(bases, key=lambda base: sum(1 for _ in _differing(cell, base, rule.varies)))


def _differing(cell: Cell, base: Cell, axes: Iterable[str]) -> Iterator[str]:
    return (axis for axis in axes if _value(cell, axis) != _value(base, axis))


def has(cell: Cell, values: Mapping[str, Sequence[Any]]) -> bool:
    """Whether each axis that is named has one of its values."""
    return all(_value(cell, axis) in known for axis, known in values.items())


def _value(cell: Cell, axis: str) -> Any:
    if axis.startswith(_OPTION):
        return dict(cell.get("options", ())).get(axis.removeprefix(_OPTION))
    return cell.get(axis)


def _shared(cell: Cell, varies: Sequence[str]) -> Hashable:
    """Return what points have in common that differ in these axes at most."""
    options = {axis.removeprefix(_OPTION) for axis in varies if axis.startswith(_OPTION)}
    if not options:
        return cell.apart_from(*varies, "repeat")
    axes = tuple(axis for axis in varies if not axis.startswith(_OPTION))
    rest = tuple(item for item in cell.get("options", ()) if item[0] not in options)
    return cell.apart_from(*axes, "options", "repeat"), rest
