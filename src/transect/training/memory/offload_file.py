"""Activations go to a file, written behind the forward pass and read ahead of the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transect.domain.axes.train import TrainCell
from transect.training.memory import MEMORIES, Activations, Memory
from transect.training.memory._offload import OffloadedActivations
from transect.training.memory._store import Store
from transect.training.memory._swap_file import SwapFile

if TYPE_CHECKING:
    from transect.training.frameworks import ModelPlan

# Bytes that may wait to be written, and as many that are read ahead, without a budget.
WINDOW = 1 << 28


def window_bytes(budget: int | None) -> int:
    """Return the store's window under a budget of memory: an eighth of it, 256 MiB at most."""
    return WINDOW if budget is None else min(WINDOW, budget // 8)


@MEMORIES.register("offload-file")
class OffloadFile(Memory):
    """Keeps in memory what is being written or read ahead; the rest lies in a nameless file in TMPDIR."""

    def supports(self, cell: TrainCell) -> str | None:
        """On a CPU: a GPU's would pass the host's memory on its way."""
        if cell.device != "cpu":
            return f"it writes what lies in the host's memory, not on {cell.device}: see offload-host"
        return super().supports(cell)

    def arrange(self, model: Any, plan: ModelPlan) -> Activations:
        """Offload what all layers save."""
        return OffloadedActivations(Store(SwapFile(), window_bytes(plan.memory_budget)), model)
