"""The encode stage: tickets as rows of word numbers."""

from __future__ import annotations

from typing import Any

from transect.domain.axes.text import CorpusCell, EmbeddingsCell, EncodeCell, SplitCell
from transect.domain.cell import Cell
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage
from transect.stages.corpus.stage import check_names
from transect.stages.embeddings import tokens_of

# What the record of a corpus says that classifiers and reports need too.
CORPUS_FACTS = ("classes", "synthetic", "bayes_accuracy")
_SHARED = ("corpus", "view", "names", "stop_words", "split", "embeddings")


def encoded(cell: Any) -> EncodeCell:
    """Return the cell whose rows a classifier reads."""
    return EncodeCell(words=cell.words, **{axis: getattr(cell, axis) for axis in _SHARED})


@STAGES.register("encode")
class Encode(Stage[EncodeCell]):
    """Numbers words, cuts and pads."""

    payload = "transect.payloads.encode:encode"
    takes = {
        "corpus": Takes("labels.npy", details=CORPUS_FACTS),
        "tokens": Takes("tokens.npy", "offsets.npy", "words.json"),
        "split": Takes("parts.npz"),
        "embeddings": Takes("vocabulary.json"),
    }
    needs = ("corpus", "tokens", "split", "embeddings")
    placement = Placement(group="text")

    def inputs(self, cell: EncodeCell, context: Context) -> dict[str, Cell]:
        """Labels, words, parts and vocabulary. A cell may be asked for outside of sections."""
        named = {"splits": [cell.split], "embeddings": [cell.embeddings], "lengths": [cell.words]}
        where = context.where("encoded tickets")
        check_names(context.section("tickets"), where, corpora=[cell.corpus], **named)
        return {
            "corpus": CorpusCell(corpus=cell.corpus),
            "tokens": tokens_of(cell),
            "split": SplitCell(corpus=cell.corpus, split=cell.split),
            "embeddings": EmbeddingsCell(**{axis: getattr(cell, axis) for axis in _SHARED}),
        }

    def spec(self, cell: EncodeCell, context: Context) -> dict[str, Any]:
        """The rule for the length."""
        return {"rule": context.section("tickets").lengths[cell.words].model_dump()}

    def environment(self, cell: EncodeCell) -> str:
        """numpy."""
        return "text"
