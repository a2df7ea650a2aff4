"""The axes of a conversion."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from transect.domain.cell import Axis, Cell

__all__ = ["PRECISIONS", "ConvertCell", "Lower"]

# To which an exported model can be converted.
Lower = Literal["fp16", "int8-dynamic", "int8-static"]
PRECISIONS: tuple[Lower, ...] = get_args(Lower)


class ConvertCell(Cell):
    """An exported model, trained or made, in a lower precision."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["convert"] = "convert"
    workload: Annotated[str, Axis(place=20, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]
