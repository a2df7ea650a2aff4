"""The extract-text stage: what is read of each ticket."""

from __future__ import annotations

from typing import Any

from transect.domain.axes.text import CorpusCell, ExtractTextCell
from transect.domain.cell import Cell
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage


@STAGES.register("extract-text")
class Dialogue(Stage[ExtractTextCell]):
    """Joins the messages that are read, and treats the names in them."""

    payload = "transect.payloads.extract_text:extract"
    takes = {"corpus": Takes("tickets.jsonl")}
    needs = ("corpus",)
    placement = Placement(group="text")

    def inputs(self, cell: ExtractTextCell, context: Context) -> dict[str, Cell]:
        """The tickets."""
        return {"corpus": CorpusCell(corpus=cell.corpus)}

    def spec(self, cell: ExtractTextCell, context: Context) -> dict[str, Any]:
        """Whether the corpus has kept names: without them there is nothing to keep."""
        rule = context.section("tickets").corpora[cell.corpus]
        return {"redacted": rule.redact}

    def environment(self, cell: ExtractTextCell) -> str:
        """As the corpus."""
        return "text"
