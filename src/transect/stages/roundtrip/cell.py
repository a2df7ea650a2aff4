"""The axes of a round trip."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from transect.domain.cell import Axis, Cell

__all__ = ["RoundtripCell"]


class RoundtripCell(Cell):
    """A made model's file, loaded by another framework."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["roundtrip"] = "roundtrip"
    workload: Annotated[str, Axis(place=20, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]
    loader: Annotated[str, Axis(place=60, label=lambda name: f"into {name}", name=True)]
