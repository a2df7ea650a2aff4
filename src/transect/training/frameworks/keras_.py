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

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, runs_on
from transect.training.frameworks._channels_last import samples_first
from transect.training.frameworks._keras_jax import JaxTrainer
from transect.training.frameworks._keras_trainers import TensorFlowTrainer, TorchTrainer
from transect.training.frameworks._tensorflow_part import KerasTensorflowPart
from transect.training.frameworks._tensorflow_trainer import configure
from transect.training.frameworks._torch_part import AutogradPart
from transect.training.parts import PartByTrainer


class _KerasJaxPart(PartByTrainer):
    """`jax.vjp` within a jitted function gives a function as a result, with all that it has kept.

    Functions are compiled once for each size of a micro-batch. The tape of one under way holds how to go back,
    and the weight where the part ends the model.
    """

    trainer: JaxTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart, keras: Any) -> None:
        super().__init__(plan, part, lambda own: JaxTrainer(own, keras))
        import jax

        numpy, trainer, inner = jax.numpy, self.trainer, not part.begins
        self._trained = len(trainer.state[0])
        self._none = trainer.flat_gradient

        def outputs(trained: Any, others: Any, x: Any) -> Any:
            return trainer.model.stateless_call(trained, others, x, training=True)

        def loss(trained: Any, others: Any, x: Any, y: Any) -> Any:
            found, others = outputs(trained, others, x)
            return trainer.loss(y, found), others

        def taped(function: Any) -> Any:
            def run(trained: Any, others: Any, x: Any, *y: Any) -> Any:
                if inner:
                    return jax.vjp(lambda t, i: function(t, others, i, *y), trained, x, has_aux=True)
                return jax.vjp(lambda t: function(t, others, x, *y), trained, has_aux=True)

            return jax.jit(run)

        def back(flat: Any, way: Any, g: Any) -> tuple[Any, ...]:
            own, *rest = way(g)
            if own:
                flat = flat + numpy.concatenate([one.ravel() for one in own])
            return flat, *rest

        self._forward, self._loss = taped(outputs), taped(loss)
        self._back = jax.jit(back)

    def begin_step(self) -> None:
        super().begin_step()
        self.trainer.flat_gradient = self._none

    def _pass(self, i: int, function: Any, x: Any, y: tuple[Any, ...], weight: float) -> Any:
        trained, others, moving = self.trainer.state
        end, way, others = function(trained, others, self.native(x), *y)
        self.trainer.state = (trained, others, moving)
        self.tapes[i] = way, weight
        return end

    def forward(self, i: int, x: Any) -> np.ndarray:
        """Return the outputs: the array is JAX's own memory."""
        return np.asarray(self._pass(i, self._forward, x, (), 1.0))

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        return float(self._pass(i, self._loss, x, (y,), weight))

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        way, weight = self.tapes.pop(i)
        given = self.trainer.dtype.type(weight) if g is None else g
        self.trainer.flat_gradient, *rest = self._back(self.trainer.flat_gradient, way, given)
        return samples_first(np.asarray(rest[0])) if rest else None

    def update(self, learning_rate: float) -> None:
        if self._trained:
            self.trainer.update(learning_rate)

    def finish_step(self) -> None:
        if self._trained:
            self.trainer.finish_step()


class _KerasTorchPart(AutogradPart):
    """A part as Keras computes it on torch."""

    trainer: TorchTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart, keras: Any) -> None:
        super().__init__(plan, part, lambda own: TorchTrainer(own, keras))

    def begin_step(self) -> None:
        super().begin_step()
        self.trainer.model.zero_grad()

    def _outputs(self, x: Any) -> Any:
        return self.trainer.model(x, training=True)

    def _loss(self, x: Any, y: Any) -> Any:
        return self.trainer.loss(y, self._outputs(x))

    def gradient(self) -> np.ndarray:
        return self.trainer.gradient() if self.trainer.model.trainable_variables else np.empty(0)


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
        return runs_on(cell, f"Keras {self.major} on TensorFlow", why="its environment has no CUDA")

    def trainer(self, plan: ModelPlan) -> TensorFlowTrainer:
        return TensorFlowTrainer(plan, self._begin(plan))

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> KerasTensorflowPart:
        return KerasTensorflowPart(plan, part, self._begin(plan))

    def _begin(self, plan: ModelPlan) -> Any:
        configure(plan.threads, plan.device)
        keras = _keras("tensorflow")
        if int(keras.__version__.split(".")[0]) != self.major:
            raise ImportError(f"this needs Keras {self.major}, not {keras.__version__}")
        return keras

    def libraries(self) -> dict[str, str]:
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
        return runs_on(cell, "Keras on torch", why="it was never tried on a GPU")

    def trainer(self, plan: ModelPlan) -> TorchTrainer:
        return TorchTrainer(plan, self._begin(plan))

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> _KerasTorchPart:
        return _KerasTorchPart(plan, part, self._begin(plan))

    def _begin(self, plan: ModelPlan) -> Any:
        import torch

        torch.set_num_threads(plan.threads)
        # Else Keras takes a GPU where there is one.
        os.environ["KERAS_TORCH_DEVICE"] = plan.device
        return _keras("torch")

    def libraries(self) -> dict[str, str]:
        import keras
        import torch

        return {"keras": keras.__version__, "torch": torch.__version__}


@FRAMEWORKS.register("keras-jax")
class KerasJax(PartFramework):
    """Keras 3 on JAX."""

    environment = "keras-jax"
    optimisers = _OPTIMISERS

    def supports(self, cell: TrainCell) -> str | None:
        return runs_on(cell, "Keras on JAX", why="a GPU takes another jaxlib than the pinned one")

    def trainer(self, plan: ModelPlan) -> JaxTrainer:
        return JaxTrainer(plan, self._begin(plan))

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> _KerasJaxPart:
        return _KerasJaxPart(plan, part, self._begin(plan))

    def _begin(self, plan: ModelPlan) -> Any:
        # XLA has no option for it: its pools take their size from NPROC when the client is made.
        os.environ["NPROC"] = str(plan.threads)
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", plan.precision == "fp64")
        return _keras("jax")

    def libraries(self) -> dict[str, str]:
        return {name: version(name) for name in ("keras", "jax", "jaxlib")}
