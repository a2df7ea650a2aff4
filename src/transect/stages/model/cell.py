"""The axes of a made model."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from transect.domain.cell import Axis, Cell

__all__ = ["ModelCell"]


class ModelCell(Cell):
    """A model with drawn weights, built in a framework and written to ONNX by an exporter."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["model"] = "model"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Annotated[str, Axis(place=30, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]
