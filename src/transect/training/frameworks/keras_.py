"""Keras 3 on TensorFlow, torch and JAX, and Keras 2: the model that a Keras user writes.

Defaults of Keras that differ from the common rule, and how they are set equal (`_keras_model`):

- The optimisers' `weight_decay` is decoupled: it is added to the gradient instead.
- Their momentum holds learning_rate * gradient: it is rescaled when the rate changes.
- Batch norm has epsilon 1e-3 and momentum 0.99 (0.01 in torch's words), both are given; it averages
  the population variance, and a subclass stretches what a batch adds by n / (n - 1). Left as it is:
  Keras 3 computes the variance as E[x^2] - E[x]^2, which rounds more.
- The loss "mse" averages over classes and has no half: a loss of our own.
- padding="same" pads strided convolutions unevenly: ZeroPadding2D pads evenly.
- Initial weights are those of the data stage.
- Float64 is promoted to float32 on torch and JAX: not in cells in fp64.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from importlib import import_module
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import (
    FRAMEWORKS,
    ModelPart,
    ModelPlan,
    PartFramework,
    PartTrainer,
    Trainer,
    _jax_setup,
    runs_on,
)
from transect.training.frameworks._jax_part import JaxPart
from transect.training.frameworks._keras_jax import JaxTrainer
from transect.training.frameworks._keras_losses import LOSSES
from transect.training.frameworks._keras_trainers import TensorFlowTrainer, TorchTrainer
from transect.training.frameworks._tensorflow_part import KerasTensorflowPart
from transect.training.frameworks._tensorflow_trainer import configure
from transect.training.frameworks._torch_part import AutogradPart
from transect.training.layers import LayerNorm


class _KerasJaxPart(JaxPart):
    """A part as Keras computes it on JAX."""

    def __init__(self, plan: ModelPlan, part: ModelPart, keras: Any) -> None:
        super().__init__(plan, part, lambda part_plan: JaxTrainer(part_plan, keras))


class _KerasTorchPart(AutogradPart):
    """A part as Keras computes it on torch."""

    trainer: TorchTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart, keras: Any) -> None:
        super().__init__(plan, part, lambda part_plan: TorchTrainer(part_plan, keras))

    def begin_step(self) -> None:
        super().begin_step()
        self.trainer.model.zero_grad()

    def _outputs(self, x: Any) -> Any:
        return self.trainer.model(x, training=True)

    def _loss(self, x: Any, y: Any) -> Any:
        return self.trainer.loss(y, self._outputs(x))

    def gradient(self) -> np.ndarray:
        return self.trainer.gradient() if self.trainer.model.trainable_variables else np.empty(0)


class _Keras(PartFramework):
    """Keras on one of its back ends."""

    optimisers: tuple[str, ...] = ("sgd", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "lamb")
    losses = LOSSES
    follows = ("decay", "label_smoothing", "clip_norm", "accumulation", "ema")
    lacks = (LayerNorm,)
    major = 3
    # The back end, the package that it is, and those whose versions count.
    backend = ""
    packages: tuple[str, ...] = ()
    # Where it computes, and why on no GPU.
    devices: tuple[str, ...] = ("cpu",)
    why = ""
    # What computes models, and parts of them.
    whole: Any = None
    part: Any = None

    def supports(self, cell: TrainCell) -> str | None:
        who = f"Keras {self.major} on {self.backend}"
        if cell.device == "cuda" and cell.device in self.devices and cell.strategy != "single":
            return f"{who} trains on one GPU by itself: strategy single, not {cell.strategy}"
        return runs_on(cell, who, self.devices, why=self.why)

    def trainer(self, plan: ModelPlan) -> Trainer:
        made: Trainer = self.whole(plan, self._keras(plan))
        return made

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> PartTrainer:
        made: PartTrainer = self.part(plan, part, self._keras(plan))
        return made

    def _keras(self, plan: ModelPlan) -> Any:
        """Set up the back end, then import Keras on it."""
        self._configure(plan)
        os.environ["KERAS_BACKEND"] = self.backend
        import keras

        found = f"Keras {keras.__version__.split('.')[0]} on {keras.backend.backend()}"
        if found != f"Keras {self.major} on {self.backend}":
            raise ImportError(f"this needs Keras {self.major} on {self.backend}, there is {found}")
        return keras

    @abstractmethod
    def _configure(self, plan: ModelPlan) -> None:
        """Set threads and devices, before Keras is imported."""

    def libraries(self) -> dict[str, str]:
        return {name: str(import_module(name).__version__) for name in ("keras", *self.packages)}


@FRAMEWORKS.register("keras-tensorflow", "keras", "keras-3", "keras-tf")
class KerasTensorFlow(_Keras):
    """Keras 3 on TensorFlow."""

    environment = backend = "tensorflow"
    packages = ("tensorflow",)
    why = "its environment has no CUDA"
    whole, part = TensorFlowTrainer, KerasTensorflowPart

    def _configure(self, plan: ModelPlan) -> None:
        configure(plan.threads, plan.device)


@FRAMEWORKS.register("keras-2", "keras2", "tf.keras", "tf-keras")
class Keras2(KerasTensorFlow):
    """Keras 2, which TensorFlow has as tf.keras until 2.15."""

    environment = "horovod-tensorflow"
    # Rules of our own need `keras.ops`.
    optimisers = ("sgd", "nesterov", "adam", "adamw")
    major = 2


@FRAMEWORKS.register("keras-torch", "keras", "keras-3", "keras-pytorch")
class KerasTorch(_Keras):
    """Keras 3 on torch."""

    environment = backend = "torch"
    packages = ("torch",)
    devices = ("cpu", "cuda")
    whole, part = TorchTrainer, _KerasTorchPart

    def _configure(self, plan: ModelPlan) -> None:
        import torch

        torch.set_num_threads(plan.threads)
        # Else Keras takes a GPU where there is one.
        os.environ["KERAS_TORCH_DEVICE"] = plan.device
        # Torch lets cuDNN round convolutions to TF32; float32 means float32 here.
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False


@FRAMEWORKS.register("keras-jax", "keras", "keras-3")
class KerasJax(_Keras):
    """Keras 3 on JAX."""

    environment, backend = "keras-jax", "jax"
    packages = ("jax", "jaxlib")
    devices = ("cpu", "cuda")
    whole, part = JaxTrainer, _KerasJaxPart

    def _configure(self, plan: ModelPlan) -> None:
        _jax_setup.configure(plan.threads, plan.device, plan.precision)
