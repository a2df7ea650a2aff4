"""The axes that the stages of the text pipeline share: each stage adds to those of the one before."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from transect.domain.cell import Axis, Cell

__all__ = ["Corpus", "Kind", "Partition", "RowsAxes", "VectorsAxes", "ViewAxes", "WordsAxes"]

NAMES = {
    "kept": "names kept", "pseudonyms": "names as pseudonyms", "removed": "names removed",
}  # fmt: skip
VIEWS = {"conversation": "whole conversation", "first": "first question"}

Corpus = Annotated[str, Axis(place=22, name=True)]
# What of a ticket is read: all its messages, or the first one.
View = Annotated[Literal["conversation", "first"], Axis(place=30, label=VIEWS.__getitem__)]
# What becomes of the names of people in the text.
Names = Annotated[Literal["kept", "pseudonyms", "removed"], Axis(place=31, label=NAMES.__getitem__)]
# Whether stop words stay in the text.
StopWords = Annotated[
    bool,
    Axis(place=32, word=lambda stay: "stop" if stay else "", label=lambda stay: "with stop words" if stay else ""),
]  # fmt: skip
Partition = Annotated[str, Axis(place=33, label=lambda name: f"partition {name}")]
Vectors = Annotated[str, Axis(place=34, label=lambda name: f"vectors {name}")]
# The name of a rule for how many words of a ticket are read.
Words = Annotated[str, Axis(place=35, label=lambda name: f"length {name}")]
# The classifier behind a name of the study, which says more: no word of its own.
Kind = Annotated[str, Axis(place=41, word=None, label=lambda _: "")]


class ViewAxes(Cell):
    """What is read of each ticket of a corpus."""

    always: ClassVar[tuple[str, ...]] = ("view", "names")

    corpus: Corpus
    view: View = "conversation"
    names: Names = "pseudonyms"


class WordsAxes(ViewAxes):
    """Its words."""

    stop_words: StopWords = False


class VectorsAxes(WordsAxes):
    """The vocabulary for the words."""

    partition: Partition
    vectors: Vectors


class RowsAxes(VectorsAxes):
    """Rows of word numbers of one length."""

    words: Words
