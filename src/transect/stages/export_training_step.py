"""The export-training-step stage: the portable training step of a base model, and the path that it must follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.data import data_of
from transect.domain.axes.retrain import RetrainCell, StepCell
from transect.domain.cell import Cell
from transect.domain.paths import PACKAGE
from transect.domain.registry import Registry
from transect.domain.takes import DataArrays, Takes
from transect.planning.context import Context
from transect.planning.rule_sources import rule_sources
from transect.planning.stage import STAGES, Stage
from transect.stages.dataset import workload_plugins
from transect.stages.train.stage import trained
from transect.training.models import no_module
from transect.training.optimisers import OWN_OPTIMISER
from transect.training.workloads import WORKLOADS, model_of

# Whose weights retraining goes on from: the module that is exported is its own.
BASE_FRAMEWORK = "torch"


@STAGES.register("export-training-step")
class Step(Stage[StepCell]):
    """Exports training steps, and computes in float64 what each retraining of them must compute."""

    payload = "transect.payloads.export_training_step:make_step"
    takes = {
        "data": DataArrays(lambda spec: sorted({problem["repeat"] for problem in spec["problems"]}) or [0]),
        "weights": Takes("weights.npz"),
    }
    needs = ("dataset", "train")

    def inputs(self, cell: StepCell, context: Context) -> dict[str, Cell]:
        """The data, and the weights of one training where the base is a whole one."""
        data: dict[str, Cell] = {"data": data_of(cell.workload)}
        if cell.base_epochs is not None:
            return data
        return data | {"weights": trained(cell.workload, BASE_FRAMEWORK, context)}

    def plugins(self, cell: StepCell) -> list[tuple[Registry[Any], str]]:
        """Workload and dataset."""
        return workload_plugins(cell.workload)

    def supports(self, cell: StepCell) -> str | None:
        """Models that torch builds."""
        if cell.optimiser == OWN_OPTIMISER:
            return "an exported step updates by a rule of transect's, not by what a function of the user's makes: say `optimisers` in the grid"
        return no_module(model_of(WORKLOADS.get(cell.workload)))

    def spec(self, cell: StepCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters, and each problem that a retraining of the step poses.

        Federated learning poses none: it takes the graphs, and has weights and rows of its own.
        """
        posed = {
            problem["name"]: problem
            for taker in context.takers(cell)
            if isinstance(taker, RetrainCell)
            for problem in [context.section("retrain").problem(taker)]
        }
        return {
            "parameters": context.values(cell.workload),
            "seed": context.study.seed,
            "problems": [posed[name] for name in sorted(posed)],
        }

    def sources(self, cell: StepCell) -> list[Path]:
        """The decompositions, which a registry imports, and the rules that parameters name."""
        return [*sorted((PACKAGE / "portable_step" / "decompositions").glob("*.py")), *rule_sources()]

    def environment(self, cell: StepCell) -> str:
        """Where torch is."""
        return "torch"
