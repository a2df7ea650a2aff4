"""The tokens stage: texts become words, and their lengths are described."""

from __future__ import annotations

from transect.domain.axes.text import ExtractTextCell, TokensCell
from transect.domain.cell import Cell
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage


@STAGES.register("tokens")
class Tokens(Stage[TokensCell]):
    """Cuts texts into words, and leaves stop words out."""

    payload = "transect.payloads.tokens:tokenise"
    takes = {"texts": Takes("texts.jsonl")}
    needs = ("extract-text",)
    placement = Placement(group="text")

    def inputs(self, cell: TokensCell, context: Context) -> dict[str, Cell]:
        """The texts."""
        return {"texts": ExtractTextCell(corpus=cell.corpus, view=cell.view, names=cell.names)}

    def environment(self, cell: TokensCell) -> str:
        """The one with the libraries that detect languages and list stop words."""
        return "text"
