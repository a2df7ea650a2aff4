"""The axes of encoded tickets."""

from __future__ import annotations

from typing import ClassVar, Literal

from transect.domain.cell import Cell
from transect.stages.corpus.cell import Corpus, Names, Partition, StopWords, Vectors, View, Words

__all__ = ["EncodeCell"]


class EncodeCell(Cell):
    """Tickets as rows of word numbers, cut and padded to one length, in the parts of a partition."""

    always: ClassVar[tuple[str, ...]] = ("view", "names")

    stage: Literal["encode"] = "encode"
    corpus: Corpus
    view: View = "conversation"
    names: Names = "pseudonyms"
    stop_words: StopWords = False
    partition: Partition
    vectors: Vectors
    words: Words
