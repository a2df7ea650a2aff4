"""The axes of a training cell."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell
from transect.domain.options import OptionsAxis

__all__ = [
    "Batch",
    "Framework",
    "Input",
    "LearningRateRule",
    "MemoryBudget",
    "Reduce",
    "Strategy",
    "TrainCell",
]

_LABELS = {"linear": "linear rate", "files": "from files", "synthetic": "synthetic input"}


def _unusual(value: str) -> str:
    return _LABELS.get(value, "")


def _budget(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:g}MiB"


def _within(size: int | None) -> str:
    return "" if size is None else f"within {size / 2**20:g} MiB"


# Shared with the reference, which stands for these axes of a training cell.
Framework = Annotated[str, Axis(place=30, name=True)]
Strategy = Annotated[str, Axis(place=40, name=True)]
Batch = Annotated[
    int, Axis(place=120, word=lambda n: f"b{n}", label=lambda n: f"batch {n}"), Field(ge=1)
]
# What the gradients of ranks become: their mean or, as in one published study, their sum.
Reduce = Annotated[
    Literal["mean", "sum"],
    Axis(place=160, label=lambda v: "sum of gradients" if v == "sum" else "", kind=True),
]
# How the learning rate follows the global batch: not at all, or in proportion.
LearningRateRule = Annotated[Literal["none", "linear"], Axis(place=161, label=_unusual, kind=True)]
# Where batches come from: the data stage's arrays, image files, or random numbers.
Input = Annotated[
    Literal["stored", "files", "synthetic"], Axis(place=162, label=_unusual, kind=True)
]
# Shared with the plan that a `planned` memory follows.
MemoryBudget = Annotated[
    int | None, Axis(place=164, word=_budget, label=_within, kind=True), Field(ge=1)
]


class TrainCell(Cell):
    """One training: a workload by a framework, its ranks joined by a strategy."""

    always: ClassVar[tuple[str, ...]] = ("nodes", "precision")

    stage: Literal["train"] = "train"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Framework
    strategy: Strategy
    # The global batch.
    batch: Batch
    reduce: Reduce = "mean"
    learning_rate_rule: LearningRateRule = "none"
    input: Input = "stored"
    # Knobs of the strategy that are not at their defaults.
    options: OptionsAxis = ()
    # What becomes of activations between the passes: a name among `training.memory.MEMORIES`.
    memory: Annotated[str, Axis(place=163, kind=True)] = "plain"
    # Bytes that training may hold besides what it began with; None: as much as there is.
    memory_budget: MemoryBudget = None
