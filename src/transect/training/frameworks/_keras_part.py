"""A part of a model in Keras on JAX and on torch; on TensorFlow: `_tensorflow_part`."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks import ModelPart, ModelPlan
from transect.training.frameworks._channels_last import samples_first
from transect.training.frameworks._keras_jax import JaxTrainer
from transect.training.frameworks._keras_trainers import TorchTrainer
from transect.training.frameworks._torch_part import AutogradPart
from transect.training.parts import PartByTrainer


class KerasJaxPart(PartByTrainer):
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


class KerasTorchPart(AutogradPart):
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
