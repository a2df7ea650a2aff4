"""The axes of a reference: those of a training cell that change what is computed."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell
from transect.stages.train.cell import (
    Batch,
    Framework,
    Input,
    LearningRateRule,
    Reduce,
    Strategy,
)

__all__ = ["ReferenceCell"]


class ReferenceCell(Cell):
    """The float64 path that training cells of one problem must follow."""

    always: ClassVar[tuple[str, ...]] = ("nodes", "precision")

    stage: Literal["reference"] = "reference"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Framework
    strategy: Strategy
    batch: Batch
    # Parts in which it cuts each batch, as ranks do.
    shards: Annotated[int, Axis(place=150, word=lambda n: f"s{n}"), Field(ge=1)] = 1
    # Micro-batches in which it cuts each part, as pipelines do.
    micro_batches: Annotated[int, Axis(place=151, word=lambda n: f"m{n}"), Field(ge=1)] = 1
    reduce: Reduce = "mean"
    learning_rate_rule: LearningRateRule = "none"
    input: Input = "stored"
