"""The embeddings stage: a vocabulary, and a vector for each of its words."""

from __future__ import annotations

from typing import Any

from transect.domain.axes.text import EmbeddingsCell, SplitCell, TokensCell
from transect.domain.cell import Cell
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage


def tokens_of(cell: Any) -> TokensCell:
    """Return the cell whose words a later one of the pipeline reads."""
    return TokensCell(corpus=cell.corpus, view=cell.view, names=cell.names, stop_words=cell.stop_words)


@STAGES.register("embeddings")
class WordVectors(Stage[EmbeddingsCell]):
    """Fits Word2Vec to the training part, or to everything to show the leak."""

    payload = "transect.payloads.embeddings:fit"
    takes = {"tokens": Takes("tokens.npy", "offsets.npy", "words.json"), "split": Takes("parts.npz")}
    needs = ("tokens", "split")
    placement = Placement(group="text")

    def inputs(self, cell: EmbeddingsCell, context: Context) -> dict[str, Cell]:
        """The words, and the split whose training part they are fitted to."""
        parts = SplitCell(corpus=cell.corpus, split=cell.split)
        return {"tokens": tokens_of(cell), "split": parts}

    def spec(self, cell: EmbeddingsCell, context: Context) -> dict[str, Any]:
        """The rule and the seed."""
        rule = context.section("tickets").embeddings[cell.embeddings]
        return {"rule": rule.model_dump(), "seed": context.study.seed}

    def environment(self, cell: EmbeddingsCell) -> str:
        """Where gensim is."""
        return "text"
