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
from importlib.metadata import version
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, runs_on
from transect.training.frameworks._keras_jax import JaxTrainer
from transect.training.frameworks._keras_part import KerasJaxPart, KerasTorchPart
from transect.training.frameworks._keras_trainers import TensorFlowTrainer, TorchTrainer
from transect.training.frameworks._tensorflow_part import KerasTensorflowPart
from transect.training.frameworks._tensorflow_trainer import configure

_OPTIMISERS = ("sgd", "nesterov", "adamw")


def _keras(backend: str) -> Any:
    """Import Keras on that back end. Raises RuntimeError when it is loaded on another one."""
    os.environ["KERAS_BACKEND"] = backend
    import keras

    if keras.backend.backend() != backend:
        raise RuntimeError(f"Keras runs on {keras.backend.backend()} already, not on {backend}")
    return keras


@FRAMEWORKS.register("keras-tensorflow")
class KerasTensorFlow(PartFramework):
    """Keras 3 on TensorFlow."""

    environment = "tensorflow"
    optimisers = _OPTIMISERS
    major = 3

    def supports(self, cell: TrainCell) -> str | None:
        """Float32 and float64 on the CPU."""
        return runs_on(cell, f"Keras {self.major} on TensorFlow", why="its environment has no CUDA")

    def trainer(self, plan: ModelPlan) -> TensorFlowTrainer:
        """Set the threads, then build the model."""
        return TensorFlowTrainer(plan, self._begin(plan))

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> KerasTensorflowPart:
        """Set the threads, then build the part's model."""
        return KerasTensorflowPart(plan, part, self._begin(plan))

    def _begin(self, plan: ModelPlan) -> Any:
        configure(plan.threads, plan.device)
        keras = _keras("tensorflow")
        if int(keras.__version__.split(".")[0]) != self.major:
            raise ImportError(f"this needs Keras {self.major}, not {keras.__version__}")
        return keras

    def libraries(self) -> dict[str, str]:
        """Return Keras and TensorFlow."""
        import keras
        import tensorflow as tf

        return {"keras": keras.__version__, "tensorflow": tf.__version__}


@FRAMEWORKS.register("keras-2")
class Keras2(KerasTensorFlow):
    """Keras 2, which TensorFlow has as tf.keras until 2.15."""

    environment = "horovod-tensorflow"
    major = 2


@FRAMEWORKS.register("keras-torch")
class KerasTorch(PartFramework):
    """Keras 3 on torch."""

    environment = "torch"
    optimisers = _OPTIMISERS

    def supports(self, cell: TrainCell) -> str | None:
        """Float32 and float64 on the CPU."""
        return runs_on(cell, "Keras on torch", why="it was never tried on a GPU")

    def trainer(self, plan: ModelPlan) -> TorchTrainer:
        """Set threads and device, then build the model."""
        return TorchTrainer(plan, self._begin(plan))

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> KerasTorchPart:
        """Set threads and device, then build the part's model."""
        return KerasTorchPart(plan, part, self._begin(plan))

    def _begin(self, plan: ModelPlan) -> Any:
        import torch

        torch.set_num_threads(plan.threads)
        # Else Keras takes a GPU where there is one.
        os.environ["KERAS_TORCH_DEVICE"] = plan.device
        return _keras("torch")

    def libraries(self) -> dict[str, str]:
        """Return Keras and torch."""
        import keras
        import torch

        return {"keras": keras.__version__, "torch": torch.__version__}


@FRAMEWORKS.register("keras-jax")
class KerasJax(PartFramework):
    """Keras 3 on JAX."""

    environment = "keras-jax"
    optimisers = _OPTIMISERS

    def supports(self, cell: TrainCell) -> str | None:
        """Float32 and float64 on the CPU."""
        return runs_on(cell, "Keras on JAX", why="a GPU takes another jaxlib than the pinned one")

    def trainer(self, plan: ModelPlan) -> JaxTrainer:
        """Set threads and precision, then build the model."""
        return JaxTrainer(plan, self._begin(plan))

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> KerasJaxPart:
        """Set threads and precision, then build the part's model."""
        return KerasJaxPart(plan, part, self._begin(plan))

    def _begin(self, plan: ModelPlan) -> Any:
        # XLA has no option for it: its pools take their size from NPROC when the client is made.
        os.environ["NPROC"] = str(plan.threads)
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", plan.precision == "fp64")
        return _keras("jax")

    def libraries(self) -> dict[str, str]:
        """Return Keras, JAX and jaxlib."""
        return {name: version(name) for name in ("keras", "jax", "jaxlib")}
