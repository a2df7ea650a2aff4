"""Which training a cell does: what may be compared with what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, TypeVar

from transect.domain.axes.train import TrainCell
from transect.domain.cell import Axis, Cell, axes_of
from transect.training.strategies import STRATEGIES


@dataclass(frozen=True, slots=True)
class Kind:
    """What makes two cells of one workload different trainings, however they are distributed.

    `unusual` holds the axes of a kind that are not at their defaults, and their values; `words`
    says the same, e.g. `sum of gradients, fp64`, and is empty when nothing is unusual.
    Groups of different kinds are never each other's base, and run in different races.
    """

    unusual: tuple[tuple[str, Any], ...] = ()
    words: str = field(default="", compare=False)

    @property
    def synthetic(self) -> bool:
        """Whether it learns from random numbers: a speed, and no quality."""
        return ("input", "synthetic") in self.unusual

    @property
    def summed(self) -> bool:
        """Whether gradients are summed: compared with its mean twin only."""
        return ("reduce", "sum") in self.unusual

    @property
    def unchecked(self) -> bool:
        """Whether its steps cannot be compared with the reference's: its step time then decides nothing."""
        return _UNCHECKED in self.unusual

    @property
    def coming(self) -> bool:
        """Whether workers come and go, so that a step is not of as many ranks from first to last."""
        return _COMING in self.unusual


# What its strategy says of a cell, and no axis: `Strategy.unchecked`, and the workers of `Strategy.layout`.
_UNCHECKED = ("updates", "asynchronous")
_COMING = ("workers", "come and go")
_OF_STRATEGY = {_UNCHECKED: "asynchronous updates", _COMING: "workers that come and go"}
# Where a sentence about a training needs other words than a label.
_WORDS = {("learning_rate_rule", "linear"): "linear learning rate", ("input", "files"): "files input"}


class _OfKind(Protocol):
    @property
    def kind(self) -> Kind: ...


G = TypeVar("G", bound=_OfKind)


def kind_of(cell: Cell) -> Kind:
    """Return the kind of a cell, from the axes that its class marks as such.

    >>> kind_of(Cell(stage="none", precision="fp64"))
    Kind(unusual=(('precision', 'fp64'),), words='fp64')
    """
    unusual = [
        (name, value, axis)
        for name, axis in _kind_axes(type(cell))
        if (value := cell.get(name)) != type(cell).model_fields[name].default
    ]
    more = list(_of_strategy(cell))
    labels = [_WORDS.get((name, value), axis.label(value)) for name, value, axis in unusual]
    return Kind(
        unusual=(*((name, value) for name, value, _ in unusual), *more),
        words=", ".join([*labels, *(_OF_STRATEGY[one] for one in more)]),
    )


def _of_strategy(cell: Cell) -> Iterator[tuple[str, str]]:
    """Ask the strategy; one that is not there any more says nothing."""
    if not isinstance(cell, TrainCell) or cell.strategy not in _names():
        return
    strategy = STRATEGIES.get(cell.strategy)
    if strategy.unchecked(cell) is not None:
        yield _UNCHECKED
    if strategy.counts_gradients and strategy.layout(cell).workers:
        yield _COMING


@cache
def _names() -> frozenset[str]:
    return frozenset(STRATEGIES)


@cache
def _kind_axes(cells: type[Cell]) -> list[tuple[str, Axis]]:
    """Return the axes that make a kind: the stage's own first, then those of all stages."""
    axes = [(name, axis) for name, axis in axes_of(cells).items() if axis.kind]
    return sorted(axes, key=lambda pair: pair[0] in Cell.model_fields)


def kinds_of(groups: Iterable[_OfKind]) -> list[Kind]:
    """Return the kinds that occur, the usual one first, then those with more groups."""
    amounts = Counter(group.kind for group in groups)
    return sorted(amounts, key=lambda kind: (_rank(kind), -amounts[kind], kind.words))


def main_kind(groups: Iterable[_OfKind]) -> Kind:
    """Return the kind that a workload's verdict is about: the usual one if it occurs."""
    return next(iter(kinds_of(groups)), Kind())


def compared(groups: Sequence[G]) -> list[G]:
    """Return the groups that share tables and charts.

    Synthetic input is not the workload, a sum of gradients is another training, and of workers that come and go a
    step is not of one number of ranks: each is left out as long as there is anything else.
    """
    least = min((_class(group.kind) for group in groups), default=0)
    return [group for group in groups if _class(group.kind) == least]


def _class(kind: Kind) -> int:
    return 2 if kind.synthetic else int(kind.summed or kind.coming)


def _rank(kind: Kind) -> tuple[int, bool]:
    return _class(kind), kind != Kind()
