"""The axes of a memory plan: those of a training cell that it depends on."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell
from transect.stages.train.cell import Batch, Framework, MemoryBudget

__all__ = ["MEMORY_PLAN", "MemoryCell"]

# The decision, in the cell's folder: what a training's worker reads.
MEMORY_PLAN = "memory-plan.json"


class MemoryCell(Cell):
    """What becomes of each layer's activations, under a budget, on a rank with `batch` samples."""

    always: ClassVar[tuple[str, ...]] = ("nodes", "precision")

    stage: Literal["memory"] = "memory"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Framework
    batch: Batch
    # As of the training cell: gradients and the optimiser's states are taken off it.
    memory_budget: MemoryBudget = None
    # Ranks of its node: where their threads take all cores, nothing hides behind computing.
    together: Annotated[int, Axis(place=166, word=lambda n: f"with{n}"), Field(ge=1)] = 1
