"""The axes of word vectors."""

from __future__ import annotations

from typing import Literal

from transect.stages.corpus.cell_text import VectorsAxes

__all__ = ["VectorsCell"]


class VectorsCell(VectorsAxes):
    """A vocabulary with a vector for each word, fitted to the tickets of a partition."""

    stage: Literal["vectors"] = "vectors"
