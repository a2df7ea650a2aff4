"""Workloads: data, model, hyper-parameters and quality target. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from transect.domain.registry import Plugin, Registry
from transect.training.layered import LayeredModel
from transect.training.layers import Layer, Shape
from transect.training.models import Model
from transect.training.optimisers import OptimiserName

__all__ = ["WORKLOADS", "Parameters", "Workload", "model_of"]


class Parameters(BaseModel):
    """Hyper-parameters of a workload; a study may override each. All strictly checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    batch: int = Field(
        gt=0, description="global batch, of one rank in weak scaling; the last partial batch of an epoch is left out"
    )
    epochs: int = Field(gt=0)
    learning_rate: float = Field(gt=0)
    optimiser: OptimiserName = Field(
        default="sgd", description="a file of `src/transect/training/optimisers`, which says the rule"
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="of sgd and nesterov")
    weight_decay: float = Field(
        default=0.0, ge=0, description="part of the gradient in sgd and nesterov, of the weights in adamw"
    )
    beta1: float = Field(default=0.9, ge=0, lt=1, description="of adamw")
    beta2: float = Field(default=0.999, ge=0, lt=1, description="of adamw")
    epsilon: float = Field(default=1e-8, gt=0, description="of adamw")
    loss: Literal["mse", "cross-entropy"] = "cross-entropy"
    quality_target: float = Field(gt=0, description="of the model's score on the test set; of an accuracy, at most 1")
    warmup_steps: int = Field(default=0, ge=0, description="steps in which a scaled learning rate grows to its value")
    reference_steps: int | None = Field(
        default=None,
        ge=0,
        description="steps that the float64 reference computes and checks; null: all; 0: none, "
        "and the report says that nothing was checked",
    )
    test_fraction: float = Field(default=0.25, gt=0, lt=1)
    dataset_options: dict[str, Any] = {}


class Workload(Plugin, ABC):
    """A model on a dataset: `layers` for samples of shape `sample`, or a `model` of another kind."""

    # The shape of one sample.
    sample: Shape = ()
    # What the model is made of; not needed with a `model` of another kind.
    layers: tuple[Layer, ...] = ()

    @property
    @abstractmethod
    def dataset(self) -> str:
        """Name its samples among `datasets.DATASETS`."""

    @property
    @abstractmethod
    def defaults(self) -> Parameters:
        """Give the hyper-parameters that a study may override."""

    @property
    def model(self) -> Model:
        """Return the model: that of `layers`, unless it is another one."""
        return LayeredModel(self.layers, self.sample)

    def model_in(self, data: Path | None) -> Model:
        """Return the model where a folder of the data stage is at hand, or None is."""
        return self.model


def model_of(workload: Workload, data: Path | None = None) -> Model:
    """Return the workload's model, with what the data stage's folder tells of it where planning knows little."""
    return workload.model_in(data)


WORKLOADS: Registry[Workload] = Registry("workload", "transect.training.workloads", Workload)
