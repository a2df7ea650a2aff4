"""A GPU's tensors in managed memory, whose pages move between GPU and host by themselves."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.domain.axes.train import TrainCell
from transect.domain.errors import MissingDependency
from transect.training.memory import MEMORIES, Activations, Memory
from transect.training.memory.plain import PlainActivations

if TYPE_CHECKING:
    from transect.training.frameworks import ModelPlan

# Set to 1 by who knows the machine: no cell asks for managed memory without it.
ALLOWED = "TRANSECT_MANAGED_MEMORY"
# Of what is free: the driver's own needs come on top.
_SHARE = 0.9


@MEMORIES.register("managed")
class Managed(Memory):
    """Allocates by cudaMallocManaged, nine tenths of what is free on the GPU at most; off unless asked for."""

    def supports(self, cell: TrainCell) -> str | None:
        """On a GPU, where a person has allowed it."""
        if cell.device != "cuda":
            return f"managed memory is a GPU's; the cell runs on the {cell.device}"
        if os.environ.get(ALLOWED) != "1":
            return f"managed memory can hang a GPU and is off: set {ALLOWED}=1 where that may happen"
        return super().supports(cell)

    def prepare(self, device: Any) -> None:
        """Exchange torch's allocator, before it has allocated anything. Raises MissingDependency."""
        import torch

        from transect.training.memory._managed_allocator import compile_allocator

        free, _ = torch.cuda.mem_get_info(device)
        path, _ = compile_allocator(_loaded_runtime(), int(_SHARE * free))
        try:
            allocator = torch.cuda.memory.CUDAPluggableAllocator(
                str(path), "transect_managed_malloc", "transect_managed_free"
            )
            torch.cuda.memory.change_current_allocator(allocator)
        finally:
            # Mapped by now: its file need not stay.
            shutil.rmtree(path.parent)

    def arrange(self, model: Any, plan: ModelPlan) -> Activations:
        """Leave the module alone: pages move."""
        return PlainActivations()


def _loaded_runtime() -> str:
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.split(maxsplit=5)[-1]
        if "/libcudart.so" in path:
            return path
    raise MissingDependency("managed memory: torch has loaded no libcudart.so")
