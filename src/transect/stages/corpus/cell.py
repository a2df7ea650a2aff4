"""The axes of a corpus, and those that all later stages of the text pipeline share."""

from __future__ import annotations

from typing import Annotated, Literal

from transect.domain.cell import Axis, Cell

__all__ = ["Corpus", "CorpusCell", "Names", "Partition", "StopWords", "Vectors", "View", "Words"]

NAMES = {
    "kept": "names kept", "pseudonyms": "names as pseudonyms", "removed": "names removed",
}  # fmt: skip
VIEWS = {"conversation": "whole conversation", "first": "first question"}

Corpus = Annotated[str, Axis(place=20, name=True)]
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


class CorpusCell(Cell):
    """The tickets of one source: parsed, normalised, with identities hashed."""

    stage: Literal["corpus"] = "corpus"
    corpus: Corpus
