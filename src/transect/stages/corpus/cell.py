"""The axes of a corpus."""

from __future__ import annotations

from typing import Literal

from transect.domain.cell import Cell
from transect.stages.corpus.cell_text import Corpus

__all__ = ["CorpusCell"]


class CorpusCell(Cell):
    """The tickets of one source: parsed, normalised, with identities hashed."""

    stage: Literal["corpus"] = "corpus"
    corpus: Corpus
