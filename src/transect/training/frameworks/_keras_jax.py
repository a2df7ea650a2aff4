"""Keras on JAX: functions of the whole state, jitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks import TrainingState
from transect.training.frameworks._jax_averages import Averages
from transect.training.frameworks._keras_trainers import KerasTrainer


class JaxTrainer(KerasTrainer):
    """Jitted functions of the `state`: the values of the trained, the other and the optimiser's
    variables. Keras' variables themselves are stale until `_store`: to set them in every step took
    a tenth of a small one.
    """

    state: tuple[Any, ...] = ()

    def _prepare(self) -> None:
        import jax

        numpy, model, optimiser = jax.numpy, self.model, self.optimiser
        shapes, ends = self._shapes, np.cumsum(self._sizes)[:-1]
        # A jitted function takes numpy's arrays faster than they are made into its own before.
        self._tensor = lambda array: array
        self._array = numpy.array
        self.flat_gradient = numpy.zeros(sum(self._sizes), self.dtype)

        def value(trained: Any, others: Any, x: Any, y: Any) -> tuple[Any, Any]:
            outputs, others = self.training_outputs(trained, others, x)
            return self.loss(y, outputs), others

        gradients = jax.value_and_grad(value, has_aux=True)

        def backward(trained: Any, others: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
            (loss, others), parts = gradients(trained, others, x, y)
            return loss, others, self.flat(parts)

        def apply(trained: Any, state: Any, flat: Any) -> tuple[Any, Any]:
            parts = zip(numpy.split(flat, ends), shapes, strict=True)
            whole = self._clipped([part.reshape(shape) for part, shape in parts])
            updated: tuple[Any, Any] = optimiser.stateless_apply(state, whole, trained)
            return updated

        def step(trained: Any, others: Any, state: Any, x: Any, y: Any) -> tuple[Any, ...]:
            (loss, others), parts = gradients(trained, others, x, y)
            trained, state = optimiser.stateless_apply(state, self._clipped(parts), trained)
            return loss, trained, others, state

        self._averages = Averages(self._plan.parameters.ema)
        # What is replaced by the result gives its memory to it.
        self._backward = jax.jit(backward, donate_argnums=1)
        self._update = jax.jit(apply, donate_argnums=(0, 1))
        self._step = jax.jit(step, donate_argnums=(0, 1, 2))
        self._predict = jax.jit(lambda *given: model.stateless_call(*given, training=False)[0])
        self.fetch()

    def training_outputs(self, trained: Any, others: Any, x: Any) -> tuple[Any, Any]:
        """Return the outputs for a batch in training, and the other weights after it; to be compiled."""
        found: tuple[Any, Any] = self.model.stateless_call(trained, others, x, training=True)
        return found

    def flat(self, gradients: list[Any]) -> Any:
        """Return the gradients side by side; to be compiled."""
        import jax

        return jax.numpy.concatenate([gradient.ravel() for gradient in gradients])

    def _held(self) -> tuple[list[Any], ...]:
        model = self.model
        return model.trainable_variables, model.non_trainable_variables, self.optimiser.variables

    def fetch(self) -> None:
        self.state = tuple([variable.value for variable in variables] for variables in self._held())

    def _store(self) -> None:
        for variables, values in zip(self._held(), self.state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Round the given weights to this trainer's precision; momenta stay."""
        if not self.state:
            return super().load(weights)
        self._store()
        super().load(weights)
        self.fetch()

    def resume(self, state: TrainingState) -> None:
        super().resume(state)
        self.fetch()

    def weights(self) -> dict[str, np.ndarray]:
        self._store()
        return super().weights()

    def _set_rate(self, learning_rate: float) -> None:
        if learning_rate != self.optimiser.rate_now:
            self._store()
            super()._set_rate(learning_rate)
            self.fetch()

    def forward_backward(self, x: Any, y: Any) -> float:
        trained, others, moving = self.state
        loss, others, self.flat_gradient = self._backward(trained, others, x, y)
        self.state = (trained, others, moving)
        return float(loss)

    def gradient(self) -> np.ndarray:
        np.copyto(self._buffer, self.flat_gradient)
        return self._buffer

    def set_gradient(self, flat: np.ndarray) -> None:
        self.flat_gradient = self._array(flat)

    def _apply(self) -> None:
        trained, others, moving = self.state
        trained, moving = self._update(trained, moving, self.flat_gradient)
        self.state = (trained, others, moving)

    def _whole_step(self, x: Any, y: Any) -> float:
        loss, *state = self._step(*self.state, x, y)
        self.state = tuple(state)
        return float(loss)

    def average(self) -> None:
        self._averages.move(self.state[0])

    def exchange_averages(self) -> None:
        trained, others, moving = self.state
        self.state = (self._averages.exchanged(trained), others, moving)

    def finish_step(self) -> None:
        """Wait for the update: jax returns before it has computed."""
        last = self._averages.values or self.state[0]
        last[-1].block_until_ready()

    def _outputs(self, x: Any) -> np.ndarray:
        trained, others, _ = self.state
        return np.asarray(self._predict(trained, others, x))
