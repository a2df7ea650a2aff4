"""Workloads: data, model, hyper-parameters and quality target. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from transect.domain.registry import Plugin, Registry
from transect.training.layered import LayeredModel
from transect.training.layers import Layer, Shape
from transect.training.losses import LossName
from transect.training.models import Model
from transect.training.optimisers import OPTIMISERS, OptimiserName
from transect.training.schedules import ScheduleChoice

__all__ = ["WORKLOADS", "Parameters", "Workload", "model_of"]


# Where an optimiser's usual one is not 1e-8.
_EPSILONS = {"adagrad": 1e-10, "lamb": 1e-6}


class Parameters(BaseModel):
    """Hyper-parameters of a workload; a study may override each. All strictly checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    batch: int = Field(
        gt=0, description="global batch, of one rank in weak scaling; the last partial batch of an epoch is left out"
    )
    epochs: int = Field(gt=0)
    learning_rate: float = Field(gt=0)
    optimiser: OptimiserName = Field(
        default="sgd",
        description="a file of `src/transect/training/optimisers`, which says the rule; of a workload with a `module` also `FILE.py:NAME` of a function "
        "of module and learning rate that gives an optimiser of torch",
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="of sgd, nesterov and rmsprop")
    weight_decay: float = Field(
        default=0.0, ge=0, description="part of the gradient; in adamw and lamb of the update, whatever the gradient"
    )
    decay: Literal["all", "matrices"] = Field(
        default="all",
        description="matrices: no weight decay of arrays with fewer than two axes, so of biases and norms",
    )
    beta1: float = Field(default=0.9, ge=0, lt=1, description="of adam, adamw and lamb")
    beta2: float = Field(default=0.999, ge=0, lt=1, description="of adam, adamw and lamb")
    alpha: float = Field(default=0.99, ge=0, lt=1, description="of rmsprop: what is kept of its average in a step")
    epsilon: float = Field(
        default=1e-8,
        gt=0,
        description="of adam, adamw, lamb, rmsprop and adagrad; of lamb by default 1e-6, of adagrad 1e-10",
    )
    clip_norm: float | None = Field(
        default=None,
        gt=0,
        description="largest Euclidean norm of all gradients together, averaged over ranks; a longer one is scaled to it "
        "before the update; null: none",
    )
    accumulation: int = Field(
        default=1, gt=0, description="micro-batches in which each rank takes its part of a batch; one update for all"
    )
    ema: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="d of an average a of the weights, a = d a + (1 - d) w after each update, from the first update's on; "
        "what is scored and exported is the average, with the running statistics of the last step; null: none",
    )
    loss: LossName = Field(
        default="cross-entropy", description="a file of `src/transect/training/losses`, which says it"
    )
    label_smoothing: float = Field(default=0.0, ge=0, lt=1, description="of cross-entropy and next-token")
    delta: float = Field(default=1.0, gt=0, description="of huber: the distance from which on it is no square")
    quality_target: float = Field(gt=0, description="of the model's score on the test set; of an accuracy, at most 1")
    warmup_steps: int = Field(
        default=0,
        ge=0,
        description="steps in which a learning rate scaled with the global batch grows from the workload's own; "
        "the warm-up of a training from near 0 is an option of `schedule`",
    )
    schedule: ScheduleChoice = Field(
        default={"name": "constant", "warmup_steps": 0},
        description="a file of `src/transect/training/schedules`, `FILE.py:NAME` of a function, "
        "or a mapping of `name`, `warmup_steps` and options",
    )
    reference_steps: int | None = Field(
        default=None,
        ge=0,
        description="steps that the float64 reference computes and checks; null: all; 0: none, "
        "and the report says that nothing was checked",
    )
    test_fraction: float = Field(default=0.25, gt=0, lt=1)
    dataset_options: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _usual_epsilon(cls, given: Any) -> Any:
        # Names are not checked yet, and may be typed in another way.
        optimiser = OPTIMISERS.named(str(given.get("optimiser"))) if isinstance(given, dict) else ""
        usual = _EPSILONS.get(optimiser)
        return given if usual is None or "epsilon" in given else given | {"epsilon": usual}


def with_optimiser(parameters: Parameters, optimiser: str) -> Parameters:
    """Return the parameters with another optimiser, whose usual epsilon replaces the usual one of the first."""
    usual = {name: _EPSILONS.get(name, Parameters.model_fields["epsilon"].default) for name in OPTIMISERS}
    as_usual = parameters.epsilon == usual[parameters.optimiser]
    epsilon = usual[optimiser] if as_usual else parameters.epsilon
    return parameters.model_copy(update={"optimiser": optimiser, "epsilon": epsilon})


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
