"""The axes of a conformance cell: which runtime, on which execution provider."""

from __future__ import annotations

from typing import Annotated, Literal

from transect.domain.cell import Axis, Cell

__all__ = ["ConformanceCell"]


class ConformanceCell(Cell):
    """ONNX's operator tests under one runtime."""

    stage: Literal["conformance"] = "conformance"
    runtime: Annotated[str, Axis(place=60, name=True)]
    provider: Annotated[str, Axis(place=70)]
