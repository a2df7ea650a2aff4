"""The partition stage: which tickets train, and which serve what else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.text import CorpusCell, PartitionCell
from transect.domain.cell import Cell
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage
from transect.text.partitioners import PARTITIONERS


@STAGES.register("partition")
class Partitions(Stage[PartitionCell]):
    """Deals the tickets of a corpus out."""

    payload = "transect.payloads.partition:run"
    # What the tickets say does not matter.
    takes = {"corpus": Takes("labels.npy", "times.npy", "owners.npy")}
    needs = ("corpus",)
    placement = Placement(group="text")

    def inputs(self, cell: PartitionCell, context: Context) -> dict[str, Cell]:
        """The tickets."""
        return {"corpus": CorpusCell(corpus=cell.corpus)}

    def spec(self, cell: PartitionCell, context: Context) -> dict[str, Any]:
        """The rule and the seed."""
        rule = context.section("tickets").partitions[cell.partition]
        return {"rule": rule.model_dump(), "seed": context.study.seed}

    def sources(self, cell: PartitionCell) -> list[Path]:
        """Every partitioner: one is chosen by name."""
        return [PARTITIONERS.source(name) for name in PARTITIONERS]

    def environment(self, cell: PartitionCell) -> str:
        """numpy."""
        return "text"
