"""The vectors stage: a vocabulary, and a vector for each of its words."""

from __future__ import annotations

from typing import Any

from transect.domain.axes.text import PartitionCell, TokensCell, VectorsCell
from transect.domain.cell import Cell
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage


def tokens_of(cell: Any) -> TokensCell:
    """Return the cell whose words a later one of the pipeline reads."""
    return TokensCell(corpus=cell.corpus, view=cell.view, names=cell.names, stop_words=cell.stop_words)


@STAGES.register("vectors")
class WordVectors(Stage[VectorsCell]):
    """Fits Word2Vec to the training part, or to everything to show the leak."""

    payload = "transect.payloads.vectors:fit"
    takes = {"tokens": Takes("tokens.npy", "offsets.npy", "words.json"), "partition": Takes("parts.npz")}
    needs = ("tokens", "partition")
    placement = Placement(group="text")

    def inputs(self, cell: VectorsCell, context: Context) -> dict[str, Cell]:
        """The words, and the partition whose training part they are fitted to."""
        parts = PartitionCell(corpus=cell.corpus, partition=cell.partition)
        return {"tokens": tokens_of(cell), "partition": parts}

    def spec(self, cell: VectorsCell, context: Context) -> dict[str, Any]:
        """The rule and the seed."""
        rule = context.section("tickets").vectors[cell.vectors]
        return {"rule": rule.model_dump(), "seed": context.study.seed}

    def environment(self, cell: VectorsCell) -> str:
        """Where gensim is."""
        return "text"
