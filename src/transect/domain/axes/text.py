"""The axes of the text pipeline: each stage adds to those of the one before."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell

NAMES = {"kept": "names kept", "pseudonyms": "names as pseudonyms", "removed": "names removed"}
VIEWS = {"conversation": "whole conversation", "first": "first question"}

Corpus = Annotated[str, Axis(place=22, name=True)]
# What of a ticket is read: all its messages, or the first one.
View = Annotated[Literal["conversation", "first"], Axis(place=30, label=VIEWS.__getitem__)]
# What becomes of the names of people in the text.
Names = Annotated[Literal["kept", "pseudonyms", "removed"], Axis(place=31, label=NAMES.__getitem__)]
# Whether stop words stay in the text.
StopWords = Annotated[
    bool, Axis(place=32, word=lambda stay: "stop" if stay else "", label=lambda stay: "with stop words" if stay else "")
]
Split = Annotated[str, Axis(place=33, label=lambda name: f"split {name}")]
Embeddings = Annotated[str, Axis(place=34, label=lambda name: f"embeddings {name}")]
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


class EmbeddingsAxes(WordsAxes):
    """The vocabulary for the words."""

    split: Split
    embeddings: Embeddings


class RowsAxes(EmbeddingsAxes):
    """Rows of word numbers of one length."""

    words: Words


class CorpusCell(Cell):
    """The tickets of one source: parsed, normalised, with identities hashed."""

    stage: Literal["corpus"] = "corpus"
    corpus: Corpus


class ExtractTextCell(ViewAxes):
    """What is read of each ticket of a corpus, as one text."""

    stage: Literal["extract-text"] = "extract-text"


class TokensCell(WordsAxes):
    """The words of each text, without stop words unless they stay."""

    stage: Literal["tokens"] = "tokens"


class SplitCell(Cell):
    """Which tickets of a corpus train, and which serve what else: the same for every view of them."""

    stage: Literal["split"] = "split"
    corpus: Corpus
    split: Split


class EmbeddingsCell(EmbeddingsAxes):
    """A vocabulary with a vector for each word, fitted to the tickets of a split."""

    stage: Literal["embeddings"] = "embeddings"


class EncodeCell(RowsAxes):
    """Tickets as rows of word numbers, cut and padded to one length, in the parts of a split."""

    stage: Literal["encode"] = "encode"


def _number(place: int, word: str, noun: str) -> Axis:
    """Make the axis of a number: `b64` in ids, `batch 64` in labels; None has no word."""
    return Axis(
        place=place,
        word=lambda value: "" if value is None else f"{word}{value:g}",
        label=lambda value: "" if value is None else f"{noun} {value:g}",
    )


class ClassifyCell(RowsAxes):
    """One classifier, trained on encoded tickets with one value of each hyper-parameter that it has.

    One that the classifier does not have is None; `HYPERPARAMETERS` names them. `updates` stands in the place of
    `epochs` where batches are compared. Of two cells that differ in `epochs` alone, the longer one
    goes on with what the shorter one left.
    """

    stage: Literal["classify"] = "classify"
    # A name of the study's `classify.models`.
    model: Annotated[str, Axis(place=40, name=True)]
    kind: Kind
    epochs: Annotated[int | None, _number(115, "e", "epochs"), Field(ge=1)] = None
    updates: Annotated[int | None, _number(116, "u", "updates"), Field(ge=1)] = None
    batch: Annotated[int | None, _number(120, "b", "batch"), Field(ge=1)] = None
    learning_rate: Annotated[float | None, _number(122, "lr", "rate"), Field(gt=0)] = None
    optimiser: Annotated[str | None, Axis(place=114, word=lambda name: name or "", label=lambda name: name or "")] = (
        None
    )
    heads: Annotated[int | None, _number(123, "h", "heads"), Field(ge=1)] = None
    layers: Annotated[int | None, _number(124, "l", "layers"), Field(ge=1)] = None

    def hyperparameters(self) -> dict[str, Any]:
        """Return the hyper-parameters that the classifier has, with their values."""
        values = {name: getattr(self, name) for name in HYPERPARAMETERS}
        return {name: value for name, value in values.items() if value is not None}


HYPERPARAMETERS = ("epochs", "updates", "batch", "learning_rate", "optimiser", "heads", "layers")


class SearchCell(Cell):
    """One place of one rung: in rung 0 a drawn point, later the k-th best point of the rung before.

    Which point that is, and from which cell it goes on, stands in the record's details.
    """

    stage: Literal["search"] = "search"
    corpus: Corpus
    # A name of the study's `search.searches`.
    search: Annotated[str, Axis(place=40, name=True)]
    kind: Kind
    rung: Annotated[int, Axis(place=120, word=lambda n: f"rung{n}", label=lambda n: f"rung {n}"), Field(ge=0)]
    place: Annotated[int, Axis(place=121, word=lambda n: f"place{n}", label=lambda n: f"place {n}"), Field(ge=0)]
