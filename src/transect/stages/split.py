"""The split stage: which tickets train, and which serve what else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.text import CorpusCell, SplitCell
from transect.domain.cell import Cell
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage
from transect.text.splitters import SPLITTERS


@STAGES.register("split")
class Splits(Stage[SplitCell]):
    """Deals the tickets of a corpus out."""

    payload = "transect.payloads.split:run"
    # What the tickets say does not matter.
    takes = {"corpus": Takes("labels.npy", "times.npy", "owners.npy")}
    needs = ("corpus",)
    placement = Placement(group="text")

    def inputs(self, cell: SplitCell, context: Context) -> dict[str, Cell]:
        """The tickets."""
        return {"corpus": CorpusCell(corpus=cell.corpus)}

    def spec(self, cell: SplitCell, context: Context) -> dict[str, Any]:
        """The rule and the seed."""
        rule = context.section("tickets").splits[cell.split]
        return {"rule": rule.model_dump(), "seed": context.study.seed}

    def sources(self, cell: SplitCell) -> list[Path]:
        """Every splitter: one is chosen by name."""
        return [SPLITTERS.source(name) for name in SPLITTERS]

    def environment(self, cell: SplitCell) -> str:
        """numpy."""
        return "text"
