"""The axes of dialogue extraction."""

from __future__ import annotations

from typing import ClassVar, Literal

from transect.domain.cell import Cell
from transect.stages.corpus.cell import Corpus, Names, View

__all__ = ["DialogueCell"]


class DialogueCell(Cell):
    """What is read of each ticket of a corpus, as one text."""

    always: ClassVar[tuple[str, ...]] = ("view", "names")

    stage: Literal["dialogue"] = "dialogue"
    corpus: Corpus
    view: View = "conversation"
    names: Names = "pseudonyms"
