"""The axes of an export."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from transect.domain.cell import Axis, Cell

__all__ = ["ExportCell"]


class ExportCell(Cell):
    """One trained model of a framework, written to ONNX by an exporter."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["export"] = "export"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Annotated[str, Axis(place=30, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]
