"""The axes of a toy cell: whose weights, and by which norm."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell
from transect.domain.metrics import Direction, Mean, register_metric

register_metric("toy_norm", "1", Direction.NEUTRAL, Mean.NONE, "norm of all trained weights in one vector")


class ToyCell(Cell):
    """One trained model, and the order of a norm of its weights."""

    stage: Literal["toy"] = "toy"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Annotated[str, Axis(place=30, name=True)]
    order: Annotated[int, Axis(place=150, word=lambda p: f"l{p}", label=lambda p: f"order {p}"), Field(ge=1)] = 2
