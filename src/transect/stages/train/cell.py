"""The axes of a training cell."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell

__all__ = ["Batch", "Framework", "Input", "LearningRateRule", "Reduce", "Strategy", "TrainCell"]

_LABELS = {"linear": "linear rate", "files": "from files", "synthetic": "synthetic input"}


def _unusual(value: str) -> str:
    return _LABELS.get(value, "")


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
