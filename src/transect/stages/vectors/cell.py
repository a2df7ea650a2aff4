"""The axes of word vectors."""

from __future__ import annotations

from typing import ClassVar, Literal

from transect.domain.cell import Cell
from transect.stages.corpus.cell import Corpus, Names, Partition, StopWords, Vectors, View

__all__ = ["VectorsCell"]


class VectorsCell(Cell):
    """A vocabulary with a vector for each word, fitted to the tickets of a partition."""

    always: ClassVar[tuple[str, ...]] = ("view", "names")

    stage: Literal["vectors"] = "vectors"
    corpus: Corpus
    view: View = "conversation"
    names: Names = "pseudonyms"
    stop_words: StopWords = False
    partition: Partition
    vectors: Vectors
