"""Workloads: data, model, hyper-parameters and quality target. One file each."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from transect.domain.registry import Registry
from transect.training.layers import Layer, Shape

__all__ = ["WORKLOADS", "Parameters", "Workload"]


class Parameters(BaseModel):
    """Hyper-parameters of a workload; a study may override each. All strictly checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    batch: int = Field(
        gt=0,
        description="global batch, of one rank in weak scaling; the last partial batch of an epoch is left out",
    )
    epochs: int = Field(gt=0)
    learning_rate: float = Field(gt=0)
    momentum: float = Field(default=0.0, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    loss: Literal["mse", "cross-entropy"] = "cross-entropy"
    quality_target: float = Field(gt=0, le=1, description="test accuracy")
    warmup_steps: int = Field(
        default=0, ge=0, description="steps in which a scaled learning rate grows to its value"
    )
    reference_steps: int | None = Field(
        default=None,
        ge=0,
        description="steps that the float64 reference computes and checks; null: all; 0: none, "
        "and the report says that nothing was checked",
    )
    test_fraction: float = Field(default=0.25, gt=0, lt=1)
    dataset_options: dict[str, Any] = {}


class Workload(Protocol):
    """A model on a dataset. `layers` ends in what the loss takes: logits or sigmoid outputs."""

    dataset: str
    sample: Shape
    layers: tuple[Layer, ...]
    defaults: Parameters


WORKLOADS: Registry[Workload] = Registry("workload", "transect.training.workloads")
