"""The axes of an ingest cell: where its logs come from."""

from __future__ import annotations

from typing import Annotated, Literal

from transect.domain.cell import Axis, Cell

__all__ = ["IngestCell"]


class IngestCell(Cell):
    """The logs of one path of a study."""

    stage: Literal["ingest"] = "ingest"
    source: Annotated[str, Axis(place=6, name=True)]
