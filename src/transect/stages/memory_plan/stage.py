"""The memory-plan stage: a decision for each layer, for training cells whose memory is `planned`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.train import MemoryCell, TrainCell
from transect.domain.registry import Registry
from transect.planning.context import Context
from transect.planning.stage import STAGES, Placement, Stage
from transect.stages.dataset import workload_plugins
from transect.training.frameworks import FRAMEWORKS
from transect.training.layered import LayeredModel
from transect.training.models import called
from transect.training.optimisers import OPTIMISERS
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, model_of


def memory_of(cell: TrainCell) -> MemoryCell:
    """Return the plan of a training cell: the same for its repeats, and whoever adds gradients."""
    replicas = STRATEGIES.get(cell.strategy).layout(cell).replicas
    return MemoryCell(
        workload=cell.workload,
        framework=cell.framework,
        batch=max(1, cell.batch // replicas),
        memory_budget=cell.memory_budget,
        precision=cell.precision,
        device=cell.device,
        threads=cell.threads,
        together=cell.ranks_per_node,
    )


@STAGES.register("memory-plan")
class Memory(Stage[MemoryCell]):
    """Measures each layer's passes and what they save, and solves the program of `planner.memory`."""

    payload = "transect.payloads.memory_plan:run"
    runner = "transect.stages.memory_plan.run:MemoryRunner"
    measures = True
    placement = Placement(by_workload=True)

    def plugins(self, cell: MemoryCell) -> list[tuple[Registry[Any], str]]:
        """Framework, workload and dataset."""
        return [(FRAMEWORKS, cell.framework), *workload_plugins(cell.workload)]

    def supports(self, cell: MemoryCell) -> str | None:
        """Lists of layers by torch on a CPU."""
        if cell.framework != "torch" or cell.device != "cpu":
            return f"it measures layers of torch on a cpu, not of {cell.framework} on {cell.device}"
        model = model_of(WORKLOADS.get(cell.workload))
        if not isinstance(model, LayeredModel):
            return f"it measures lists of layers, not {called(model)}"
        return None

    def spec(self, cell: MemoryCell, context: Context) -> dict[str, Any]:
        """The hyper-parameters: an optimiser's states take their part of the budget."""
        return {"parameters": context.step_values(cell.workload)}

    def sources(self, cell: MemoryCell) -> list[Path]:
        """The optimisers: which one is a parameter."""
        return [OPTIMISERS.source(name) for name in OPTIMISERS]

    def environment(self, cell: MemoryCell) -> str:
        """The framework's."""
        return FRAMEWORKS.get(cell.framework).environment
