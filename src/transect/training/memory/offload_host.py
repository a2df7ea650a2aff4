"""A GPU's activations go to the host's memory and come back ahead of the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transect.domain.axes.train import TrainCell
from transect.training.memory import MEMORIES, Activations, Memory
from transect.training.memory._host_buffers import HostBuffers
from transect.training.memory._offload import OffloadedActivations
from transect.training.memory._runs import Run, compute_in_runs, layers_of
from transect.training.memory._store import Store
from transect.training.memory.offload_file import window_bytes

if TYPE_CHECKING:
    from transect.training.frameworks import ModelPlan


@MEMORIES.register("offload-host")
class OffloadHost(Memory):
    """Copies them into pinned buffers on a stream of its own, behind the computing."""

    def supports(self, cell: TrainCell) -> str | None:
        """Between a GPU and its host."""
        if cell.device != "cuda":
            return f"activations of a {cell.device} lie in the host's memory already"
        return super().supports(cell)

    def arrange(self, model: Any, plan: ModelPlan) -> Activations:
        """Offload what all layers save."""
        device = next(model.parameters()).device
        store = Store(HostBuffers(device), window_bytes(plan.memory_budget))
        activations = OffloadedActivations(store, model)
        whole = Run("offload", 0, len(layers_of(model)[0]))
        compute_in_runs(model, [whole], activations.offloading)
        return activations
