"""Each layer's activations are kept, recomputed or offloaded, as a plan says that was made for a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.training.memory import MEMORIES, Activations, Memory
from transect.training.memory._offload import OffloadedActivations
from transect.training.memory._runs import Run, compute_in_runs
from transect.training.memory._store import Store
from transect.training.memory._swap_file import SwapFile

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from transect.training.frameworks import ModelPlan


@MEMORIES.register("planned")
class Planned(Memory):
    """Follows the decision of its `memory` cell: an integer program over measured costs of layers."""

    def supports(self, cell: TrainCell) -> str | None:
        """On a CPU, under a budget."""
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
        return PlannedActivations(model, runs, int(plan.memory_plan["window_bytes"]))


class PlannedActivations(Activations):
    """Offloads where the plan does; without any such run it has neither file nor threads."""

    def __init__(self, model: Any, runs: list[Run], window: int) -> None:
        from contextlib import nullcontext

        self._runs, self._nothing = runs, nullcontext()
        self._offloaded: OffloadedActivations | None = None
        if any(run.action == "offload" for run in runs):
            self._offloaded = OffloadedActivations(Store(SwapFile(), window), model)
        compute_in_runs(model, runs, self._offloading)

    def _offloading(self) -> AbstractContextManager[Any]:
        assert self._offloaded is not None
        return self._offloaded.offloading()

    def forward(self, x: Any) -> AbstractContextManager[Any]:
        """Begin a step."""
        return self._offloaded.forward(x) if self._offloaded else self._nothing

    def backward(self) -> AbstractContextManager[Any]:
        """Read ahead."""
        return self._offloaded.backward() if self._offloaded else self._nothing

    def facts(self) -> dict[str, Any]:
        """Return the runs, and what the last step moved."""
        moved = self._offloaded.facts() if self._offloaded else {}
        return {"runs": [list(run) for run in self._runs]} | moved
