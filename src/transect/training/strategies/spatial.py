"""Spatial parallelism: ranks compute different rows of the same images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import ModelPlan, Trainer
from transect.training.frameworks._torch_trainer import TorchTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import weight_shapes
from transect.training.models import Model, called
from transect.training.strategies import STRATEGIES
from transect.training.strategies._rows import layers_by_rows, rows_of
from transect.training.strategies._torch_replicas import RankGroup, ReplicaStrategy


@dataclass(frozen=True, slots=True)
class _RowsModel(LayeredModel):
    """The model with its first layers by rows."""

    first: int
    group: RankGroup
    part: int

    def torch_module(self) -> Any:
        from transect.training.strategies._torch_rows import module_by_rows

        return module_by_rows(self.layers, self.sample, self.first, self.group, self.part)


@STRATEGIES.register("spatial")
class Spatial(ReplicaStrategy):
    """`parts` ranks each hold some rows of every image and of what layers make of them.

    Before a convolution or a pooling a rank gets the rows that its windows reach into from those that
    hold them (halo exchange), and back go their gradients. A batch norm takes mean and variance over
    all rows, a global average pool sums up. From the first layer on that has fewer rows than there are ranks, or
    none, everybody has all rows and computes alike. Weights are whole on every rank, which gets
    the whole batch too; what is divided is the work and the activations of the layers by rows.

    Own exchange: torch's DTensor returns a convolution's local part as if it were whole (2.13).
    Source: N. Dryden et al., "Improving strong-scaling of CNN training by exploiting finer-grained
    parallelism", arXiv:1903.06681.
    """

    def complaint(self, model: Model, cell: TrainCell) -> str | None:
        if not isinstance(model, LayeredModel):
            return f"it divides images between layers, and {called(model)} has none"
        if len(model.sample) != 3:
            return f"samples of shape {model.sample} have no rows"
        parts = self.replica_ranks(cell)
        if not layers_by_rows(model.layers, model.sample, parts):
            return (
                f"not even the first layer of {cell.workload} has a row of its "
                f"{model.sample[1]} for each of {parts} ranks"
            )
        return None

    def build(self, plan: ModelPlan, cell: TrainCell) -> Trainer:
        """Build the whole model, which computes its rows."""
        groups, model = self.groups, plan.model
        assert isinstance(model, LayeredModel)
        parts = groups.layout.model_parts
        self._first = layers_by_rows(model.layers, model.sample, parts)
        self._rows = rows_of(model.sample[1], parts)[groups.part]
        rows_model = _RowsModel(model.layers, model.sample, self._first, groups.replica, groups.part)
        trained = (weight for weight in weight_shapes(model.layers[: self._first]) if weight.trained)
        self._by_rows = sum(prod(weight.shape) for weight in trained)
        return TorchTrainer(replace(plan, model=rows_model))

    def reduce(self, trainer: Trainer) -> None:
        """Add up over everybody: of weights by rows each has a part of the gradient.

        Of the others the ranks of a replica have the same: it counts once.
        """
        flat = trainer.gradient()
        if self.groups.part:
            flat[self._by_rows :] = 0
        self.sum_gradients(trainer, flat, self.groups.world)

    def details(self) -> dict[str, Any]:
        """Say which rows of its images, and up to which layer."""
        return super().details() | {"rows": list(self._rows), "layers_by_rows": self._first}
