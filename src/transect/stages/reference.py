"""The reference stage: the float64 path that every trainer must follow."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

from transect.domain.axes.data import data_of
from transect.domain.axes.train import ReferenceCell, TrainCell
from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.domain.takes import DataArrays, own_repeat
from transect.planning.context import Context
from transect.planning.rule_sources import rule_sources
from transect.planning.stage import STAGES, Placement, Stage
from transect.stages.dataset import workload_plugins
from transect.training.datasets import DATASETS, StoredDataset
from transect.training.frameworks import FRAMEWORKS
from transect.training.layout import Layout
from transect.training.own_workload import OwnWorkload
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, model_of


@cache
def _parts_matter(workload: str) -> bool:
    return model_of(WORKLOADS.get(workload)).parts_matter


def _input(cell: TrainCell) -> Literal["stored", "files", "synthetic"]:
    """Return the cell's, but stored arrays where files have the same: what an own dataset gives may differ by epoch."""
    dataset = DATASETS.get(WORKLOADS.get(cell.workload).dataset)
    return "stored" if cell.input == "files" and isinstance(dataset, StoredDataset) else cell.input


@cache
def reference_of(cell: TrainCell) -> ReferenceCell:
    """Return the reference of a training cell: the same problem, whoever computes it.

    Its batches are cut in parts only where the parts change the result.
    """
    cut = cell.reduce == "sum" or _parts_matter(cell.workload)
    layout = STRATEGIES.get(cell.strategy).layout(cell)
    if layout.complaint(cell.batch) is not None:
        # The cell will be skipped: what it would have been cut into cannot be computed.
        layout = Layout(1)
    shards = layout.copies if cut else 1
    # Summed or averaged, micro-batches of one part give its mean: they matter to batch norm alone.
    micro_batches = layout.micro_batches if _parts_matter(cell.workload) else 1
    return ReferenceCell(
        workload=cell.workload,
        framework="numpy",
        strategy="single",
        precision="fp64",
        batch=cell.batch,
        repeat=cell.repeat,
        shards=shards,
        micro_batches=micro_batches,
        reduce=cell.reduce if shards > 1 else "mean",
        learning_rate_rule=cell.learning_rate_rule,
        input=_input(cell),
        hyperparameters=cell.hyperparameters,
    )


@STAGES.register("reference")
class Reference(Stage[ReferenceCell]):
    """Trains in numpy, float64, one process; measures the tolerance by perturbed runs."""

    payload = "transect.payloads.reference:reference"
    takes = {"data": DataArrays(own_repeat)}
    needs = ("dataset",)
    placement = Placement(group="prepare")

    def inputs(self, cell: ReferenceCell, context: Context) -> dict[str, Cell]:
        """The data of its workload."""
        return {"data": data_of(cell.workload)}

    def plugins(self, cell: ReferenceCell) -> list[tuple[Registry[Any], str]]:
        """Workload and dataset."""
        return workload_plugins(cell.workload)

    def spec(self, cell: ReferenceCell, context: Context) -> dict[str, Any]:
        """The precisions of the cells that it stands for."""
        return {
            "parameters": context.values(cell.workload, cell.hyperparameters),
            "precisions": sorted({taker.precision for taker in context.takers(cell)}),
        }

    def sources(self, cell: ReferenceCell) -> list[Path]:
        """The framework that computes it, and the rules: which ones are parameters."""
        return [FRAMEWORKS.source("numpy"), *rule_sources()]

    def environment(self, cell: ReferenceCell) -> str:
        """Where numpy is; torch's for a module of torch."""
        return "torch" if isinstance(WORKLOADS.get(cell.workload), OwnWorkload) else "base"
