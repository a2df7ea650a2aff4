"""The federate-reference stage: the float64 path that every engine of one federation must follow."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from transect.domain.axes.data import data_of
from transect.domain.axes.federate import FederateCell, FederateReferenceCell
from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.domain.takes import DataArrays, own_repeat
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.engines import no_federation
from transect.federated.methods import METHODS
from transect.planning.context import Context
from transect.planning.rule_sources import rule_sources
from transect.planning.stage import STAGES, Placement, Stage
from transect.stages.dataset import workload_plugins
from transect.training.frameworks import FRAMEWORKS
from transect.training.own_workload import OwnWorkload
from transect.training.script_workload import ScriptWorkload
from transect.training.workloads import WORKLOADS, Parameters

# What is computed, whoever computes it: the axes of both.
_SHARED = tuple(
    FederateReferenceCell.model_fields.keys() - {"stage", "precision", "threads", "nodes", "ranks_per_node"}
)


@cache
def federate_reference_of(cell: FederateCell) -> FederateReferenceCell:
    """Return the reference of a simulation: the same federation, whoever computes it."""
    axes = {name: getattr(cell, name) for name in _SHARED}
    return FederateReferenceCell(**axes | {"device": "cpu", "network": None, "container": None})


@STAGES.register("federate-reference")
class FederateReference(Stage[FederateReferenceCell]):
    """Deals rows and turns out, simulates in numpy, float64, and measures the tolerance by perturbed runs."""

    payload = "transect.payloads.federate_reference:reference"
    takes = {"data": DataArrays(own_repeat)}
    needs = ("dataset",)
    placement = Placement(group="prepare")

    def inputs(self, cell: FederateReferenceCell, context: Context) -> dict[str, Cell]:
        """The data of its workload."""
        return {"data": data_of(cell.workload)}

    def plugins(self, cell: FederateReferenceCell) -> list[tuple[Registry[Any], str]]:
        """Aggregation, method, workload and dataset."""
        return [(AGGREGATIONS, cell.aggregation), (METHODS, cell.method), *workload_plugins(cell.workload)]

    def spec(self, cell: FederateReferenceCell, context: Context) -> dict[str, Any]:
        """Hyper-parameters, the study's seed, and the precisions of the cells that it stands for."""
        return {
            "parameters": context.values(cell.workload, cell.hyperparameters),
            "seed": context.study.seed,
            "precisions": sorted({taker.precision for taker in context.takers(cell)}),
        }

    def refuses(self, cell: FederateReferenceCell, spec: dict[str, Any]) -> str | None:
        """What no client's turn has, and what the method says of model and hyper-parameters: nobody would follow it."""
        workload = WORKLOADS.get(cell.workload)
        if isinstance(workload, ScriptWorkload):
            return f"{cell.workload} is a script, of whose training no more than its score is known"
        return no_federation(cell, workload.model, Parameters.model_validate(spec["parameters"]))

    def sources(self, cell: FederateReferenceCell) -> list[Path]:
        """The framework that computes it, and the rules: which ones are parameters."""
        return [FRAMEWORKS.source("numpy"), *rule_sources()]

    def environment(self, cell: FederateReferenceCell) -> str:
        """Where numpy is; torch's for a module of torch."""
        return "torch" if isinstance(WORKLOADS.get(cell.workload), OwnWorkload) else "base"
