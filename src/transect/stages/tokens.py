"""The tokens stage: texts become words, and their lengths are described."""

from __future__ import annotations

from transect.domain.axes.text import DialogueCell, TokensCell
from transect.domain.cell import Cell
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage


@STAGES.register("tokens")
class Tokens(Stage[TokensCell]):
    """Cuts texts into words, and leaves stop words out."""

    payload = "transect.payloads.tokens:tokenise"
    takes = {"dialogue": Takes("texts.jsonl")}
    needs = ("dialogue",)
    placement = Placement(group="text")

    def inputs(self, cell: TokensCell, context: Context) -> dict[str, Cell]:
        """The texts."""
        return {"dialogue": DialogueCell(corpus=cell.corpus, view=cell.view, names=cell.names)}

    def environment(self, cell: TokensCell) -> str:
        """Where languages are told and stop words are listed."""
        return "text"
