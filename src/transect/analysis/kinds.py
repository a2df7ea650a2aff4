"""Which training a cell does: what may be compared with what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from transect.domain.cell import Cell

__all__ = ["Kind", "compared", "kind_of", "kinds_of", "main_kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What makes two cells of one workload different trainings, however they are distributed.

    Groups of different kinds are never each other's base, and run in different races.
    """

    input: str = "stored"
    reduce: str = "mean"
    learning_rate_rule: str = "none"
    precision: str = "fp32"

    @property
    def synthetic(self) -> bool:
        """Whether it learns from random numbers: a speed, and no quality."""
        return self.input == "synthetic"

    @property
    def summed(self) -> bool:
        """Whether gradients are summed: compared with its mean twin only."""
        return self.reduce == "sum"

    @property
    def words(self) -> str:
        """What is not usual about it, e.g. `sum of gradients, fp64`; empty when nothing is.

        >>> Kind(reduce="sum", precision="fp64").words
        'sum of gradients, fp64'
        """
        parts = (
            ("sum of gradients", self.summed),
            ("linear learning rate", self.learning_rate_rule == "linear"),
            (f"{self.input} input", self.input != "stored"),
            (self.precision, self.precision != "fp32"),
        )
        return ", ".join(text for text, holds in parts if holds)


class _OfKind(Protocol):
    @property
    def kind(self) -> Kind: ...


G = TypeVar("G", bound=_OfKind)


def kind_of(cell: Cell) -> Kind:
    """Return the kind of a training cell."""
    return Kind(cell.input, cell.reduce, cell.learning_rate_rule, cell.precision)


def kinds_of(groups: Iterable[_OfKind]) -> list[Kind]:
    """Return the kinds that occur, the usual one first, then those with more groups."""
    found = Counter(group.kind for group in groups)
    return sorted(found, key=lambda kind: (_rank(kind), -found[kind], kind.words))


def main_kind(groups: Iterable[_OfKind]) -> Kind:
    """Return the kind that a workload's verdict is about: the usual one if it occurs."""
    return next(iter(kinds_of(groups)), Kind())


def compared(groups: Sequence[G]) -> list[G]:
    """Return the groups that stand beside each other in tables and charts.

    Synthetic input is not the workload, and a sum of gradients is another training: either is left
    out as long as there is anything else.
    """
    least = min((_class(group.kind) for group in groups), default=0)
    return [group for group in groups if _class(group.kind) == least]


def _class(kind: Kind) -> int:
    return 2 if kind.synthetic else int(kind.summed)


def _rank(kind: Kind) -> tuple[int, bool]:
    return _class(kind), kind != Kind()
