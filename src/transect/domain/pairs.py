"""Planned pairs: which two points of a study are compared, by what, and which rules of the report that answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRule:
    """Which points of a stage are compared, by which metric, and the rules of the report that it answers.

    Two points are compared that differ in nothing but the axes `varies`, and in one of `differ` at least where it names
    any; `options.NAME` is one option of the axis `options`. `base`, `side` and `both` hold the values that an axis of the
    base, of the other point and of both may have, `neither` those that none of them has; None is an option that is not
    set. Of several that may be a point's base the one is taken that is most like it. Where no point may be the base,
    the rule compares nothing. Instead of naming its base a rule may set all others beside those with the value of the
    axis `first` that the study names first. Without either each two are compared, and the one that the study names first
    is the base.
    """

    metric: str
    rules: tuple[str, ...]
    varies: tuple[str, ...]
    differ: tuple[str, ...] = ()
    base: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    side: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    both: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    neither: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    first: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two points of one stage that a study compares, planned before it runs.

    `cell` and `base` are ids of cells without repeat, `varies` the axes in which they differ, and `rules` those of the
    report that the pair answers. `asked`: a question of the study names one of these rules (all count where no
    question names any), and both have the repeats that a verdict takes. Only such a pair counts in the correction, is
    measured in turn, and measured on until its interval is narrow enough.
    """

    stage: str
    cell: str
    base: str
    metric: str
    varies: tuple[str, ...]
    rules: tuple[str, ...]
    asked: bool = True

    def stored(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self) | {"varies": [*self.varies], "rules": [*self.rules]}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Pair:
        """Make the one that was stored."""
        return cls(**{**stored, "varies": tuple(stored["varies"]), "rules": tuple(stored["rules"])})

    @property
    def points(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Stage and id of the cell and of its base."""
        return (self.stage, self.cell), (self.stage, self.base)


def pairs_of(specs: Iterable[Mapping[str, Any]]) -> list[Pair]:
    """Return the pairs that stand in the specs of cells, each once. Of some, one side may stand in another block."""
    return list(dict.fromkeys(Pair.of(stored) for spec in specs for stored in spec.get("pairs", ())))


def joined(pairs: Iterable[Pair]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return for each point of these pairs one point that stands for all to which they join it: what is measured in turn.

    >>> made = [Pair(stage="train", cell=c, base=b, metric="m", varies=(), rules=()) for c, b in ("ba", "cb", "ed")]
    >>> sorted({first for first in joined(made).values()})
    [('train', 'a'), ('train', 'd')]
    """
    neighbours: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for pair in pairs:
        one, other = pair.points
        neighbours[one].append(other)
        neighbours[other].append(one)
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for start in sorted(neighbours):
        waiting = [start]
        while waiting:
            point = waiting.pop()
            if point not in first:
                first[point] = start
                waiting += neighbours[point]
    return first
