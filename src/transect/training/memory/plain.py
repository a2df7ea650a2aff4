"""Activations stay where they are."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from transect.domain.axes.train import TrainCell
from transect.training.memory import MEMORIES, Activations, Memory

if TYPE_CHECKING:
    from transect.training.frameworks import ModelPlan

_AS_IT_IS = nullcontext()


class PlainActivations(Activations):
    """Nothing to do."""

    def forward(self, x: Any) -> Any:
        return _AS_IT_IS

    def backward(self) -> Any:
        return _AS_IT_IS

    def facts(self) -> dict[str, Any]:
        return {}


@MEMORIES.register("plain")
class Plain(Memory):
    """Keeps all that a backward pass needs, as every framework does unasked."""

    def supports(self, cell: TrainCell) -> str | None:
        return None

    def arrange(self, model: Any, plan: ModelPlan) -> Activations:
        """Leave the module alone."""
        return PlainActivations()
