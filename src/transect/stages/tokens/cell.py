"""The axes of tokenising."""

from __future__ import annotations

from typing import ClassVar, Literal

from transect.domain.cell import Cell
from transect.stages.corpus.cell import Corpus, Names, StopWords, View

__all__ = ["TokensCell"]


class TokensCell(Cell):
    """The words of each text, without stop words unless they stay."""

    always: ClassVar[tuple[str, ...]] = ("view", "names")

    stage: Literal["tokens"] = "tokens"
    corpus: Corpus
    view: View = "conversation"
    names: Names = "pseudonyms"
    stop_words: StopWords = False
