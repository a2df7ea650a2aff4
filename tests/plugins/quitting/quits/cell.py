"""The axis of a cell: where its plug-in calls sys.exit."""

from __future__ import annotations

from typing import Annotated, Literal

from transect.domain.cell import Axis, Cell


class QuitsCell(Cell):
    """One place."""

    stage: Literal["quits"] = "quits"
    where: Annotated[str, Axis(place=20, name=True)]
