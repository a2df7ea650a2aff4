"""What becomes of the numbers that a backward pass needs, between the passes. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from transect.domain.axes.train import TrainCell
from transect.domain.precisions import find_precision
from transect.domain.registry import Plugin, Registry
from transect.training.layered import LayeredModel
from transect.training.saved_tensors import largest_layer
from transect.training.strategies import STRATEGIES, Strategy
from transect.training.workloads import WORKLOADS, model_of

if TYPE_CHECKING:
    from transect.training.frameworks import ModelPlan

__all__ = ["DIVIDED_LAYERS", "MEMORIES", "Activations", "Memory", "too_small", "whole_models"]

# Strategies whose ranks compute whole models as the framework's own trainer does, though they have a trainer of their own.
_WHOLE_MODELS = ("async", "jax-data-parallel", "mpi-bcast-reduce", "mpi-hierarchical", "published-sendrecv")
# Those that compute by it too, but hold no layer whole. Others train parts of a model, which nothing holds to a budget.
DIVIDED_LAYERS = ("fsdp", "spatial", "tensor-parallel")


def whole_models(name: str) -> bool:
    """Whether a strategy's ranks compute whole models by the framework's own trainer.

    What cuts a model or shards it keeps activations in its own way, and would not follow.
    """
    strategy = STRATEGIES.get(name)
    custom = type(strategy).trainer is not Strategy.trainer or strategy.sharded
    return name in _WHOLE_MODELS or not custom


class Activations(ABC):
    """One trainer's activations. Each step enters `forward`, then `backward`."""

    @abstractmethod
    def forward(self, x: Any) -> AbstractContextManager[Any]:
        """Surround a forward pass of the batch x and its loss."""

    @abstractmethod
    def backward(self) -> AbstractContextManager[Any]:
        """Surround a backward pass."""

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Return what a record should say: JSON. Bytes and seconds are of the last step."""


class Memory(Plugin, ABC):
    """Decides it for each layer. All leave every number as `plain` has it, to the last bit."""

    def supports(self, cell: TrainCell) -> str | None:
        """Return None, or the reason why the cell cannot run."""
        if cell.framework != "torch":
            return f"it needs torch, not {cell.framework}"
        if not whole_models(cell.strategy):
            return f"it works where each rank computes the whole model; with {cell.strategy} none does"
        return None

    def prepare(self, device: Any) -> None:
        """Do what must be done before anything is allocated on a torch device."""

    @abstractmethod
    def arrange(self, model: Any, plan: ModelPlan) -> Activations:
        """Change how a torch module computes, not what; its parameters keep their names."""


def too_small(cell: TrainCell, batch: int) -> str | None:
    """Return why the cell's budget cannot be kept on a rank with `batch` samples, or None."""
    if cell.memory_budget is None:
        return None
    if cell.framework != "torch":
        return f"a memory_budget needs torch, not {cell.framework}"
    if cell.device != "cpu":
        return "a memory_budget is enforced by the kernel, for a process on a cpu; it does not limit a GPU's memory"
    if not whole_models(cell.strategy) and cell.strategy not in DIVIDED_LAYERS:
        return f"a memory_budget needs passes through the whole model: {cell.strategy} trains parts"
    model = model_of(WORKLOADS.get(cell.workload))
    if cell.strategy in DIVIDED_LAYERS or not isinstance(model, LayeredModel):
        return None
    size = find_precision(cell.precision).bytes_per_number
    name, held = largest_layer(model.layers, model.sample, batch, size)
    if held <= cell.memory_budget:
        return None
    return (
        f"a memory_budget of {cell.memory_budget:,} bytes is below the largest layer: layer {name} "
        f"alone holds {held:,} bytes of {batch} samples in its backward pass"
    )


MEMORIES: Registry[Memory] = Registry("memory", "transect.training.memory", Memory)
