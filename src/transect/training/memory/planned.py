"""Each layer's activations are kept, recomputed or offloaded, as a plan says that was made for a budget."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.training.memory import MEMORIES, Activations, Memory
from transect.training.memory._offload import OffloadedActivations
from transect.training.memory._runs import Run, compute_in_runs
from transect.training.memory._store import Store
from transect.training.memory._swap_file import SwapFile
from transect.training.memory.recompute import RecomputedActivations

if TYPE_CHECKING:
    from transect.training.frameworks import ModelPlan


@MEMORIES.register("planned")
class Planned(Memory):
    """Follows the decision of its `memory` cell: an integer program over measured costs of layers."""

    def supports(self, cell: TrainCell) -> str | None:
        if cell.memory_budget is None:
            return "it plans for a memory_budget, and the cell has none"
        if cell.device != "cpu":
            return f"its plan offloads to a file, which is done from a cpu, not from {cell.device}"
        return super().supports(cell)

    def arrange(self, model: Any, plan: ModelPlan) -> Activations:
        """Compute in the plan's runs. Raises BadInput without one."""
        if plan.memory_plan is None:
            raise BadInput("memory 'planned' is given no plan: expected `runs` and `window_bytes`")
        runs = [Run(*run) for run in plan.memory_plan["runs"]]
        if any(run.action == "offload" for run in runs):
            return OffloadedActivations(Store(SwapFile(), int(plan.memory_plan["window_bytes"])), model, runs)
        # Without any such run there is neither file nor thread.
        compute_in_runs(model, runs, nullcontext)
        return RecomputedActivations(runs)
