"""The axes of encoded tickets."""

from __future__ import annotations

from typing import Literal

from transect.stages.corpus.cell_text import RowsAxes

__all__ = ["EncodeCell"]


class EncodeCell(RowsAxes):
    """Tickets as rows of word numbers, cut and padded to one length, in the parts of a partition."""

    stage: Literal["encode"] = "encode"
