"""Keras on JAX: functions of the whole state, jitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks._keras_trainers import KerasTrainer

__all__ = ["JaxTrainer"]


class JaxTrainer(KerasTrainer):
    """Jitted functions of the state; it lies in Keras' variables between them."""

    def _prepare(self) -> None:
        import jax

        numpy, model, optimiser = jax.numpy, self.model, self.optimiser
        shapes, ends = self._shapes, np.cumsum(self._sizes)[:-1]
        self._tensor = numpy.array
        self.flat_gradient = numpy.zeros(sum(self._sizes), self.dtype)
        self._trained, self._others = model.trainable_variables, model.non_trainable_variables

        def value(trained: Any, others: Any, x: Any, y: Any) -> tuple[Any, Any]:
            outputs, others = model.stateless_call(trained, others, x, training=True)
            return self.loss(y, outputs), others

        gradients = jax.value_and_grad(value, has_aux=True)

        def backward(trained: Any, others: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
            (loss, others), parts = gradients(trained, others, x, y)
            return loss, others, numpy.concatenate([part.ravel() for part in parts])

        def apply(trained: Any, state: Any, flat: Any) -> tuple[Any, Any]:
            parts = zip(numpy.split(flat, ends), shapes, strict=True)
            whole = [part.reshape(shape) for part, shape in parts]
            updated: tuple[Any, Any] = optimiser.stateless_apply(state, whole, trained)
            return updated

        def step(trained: Any, others: Any, state: Any, x: Any, y: Any) -> tuple[Any, ...]:
            (loss, others), parts = gradients(trained, others, x, y)
            trained, state = optimiser.stateless_apply(state, parts, trained)
            return loss, trained, others, state

        # What is replaced by the result gives its memory to it.
        self._backward = jax.jit(backward, donate_argnums=1)
        self._update = jax.jit(apply, donate_argnums=(0, 1))
        self._step = jax.jit(step, donate_argnums=(0, 1, 2))
        self._predict = jax.jit(lambda *given: model.stateless_call(*given, training=False)[0])

    @staticmethod
    def _values(variables: list[Any]) -> list[Any]:
        return [variable.value for variable in variables]

    @staticmethod
    def _assign(variables: list[Any], values: list[Any]) -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def forward_backward(self, x: Any, y: Any) -> float:
        """Compute the mean loss and the flat gradient."""
        trained, others = self._values(self._trained), self._values(self._others)
        loss, others, self.flat_gradient = self._backward(trained, others, x, y)
        self._assign(self._others, others)
        return float(loss)

    def gradient(self) -> np.ndarray:
        """Copy the gradient into one numpy buffer."""
        np.copyto(self._buffer, self.flat_gradient)
        return self._buffer

    def set_gradient(self, flat: np.ndarray) -> None:
        """Make an array."""
        self.flat_gradient = self._tensor(flat)

    def _apply(self) -> None:
        trained, state = self._values(self._trained), self._values(self.optimiser.variables)
        trained, state = self._update(trained, state, self.flat_gradient)
        self._assign(self._trained, trained)
        self._assign(self.optimiser.variables, state)

    def _whole_step(self, x: Any, y: Any) -> float:
        held = (self._trained, self._others, self.optimiser.variables)
        loss, *new = self._step(*map(self._values, held), x, y)
        for variables, values in zip(held, new, strict=True):
            self._assign(variables, values)
        return float(loss)

    def finish_step(self) -> None:
        """Wait for the update: jax returns before it has computed."""
        self._trained[-1].value.block_until_ready()

    def _outputs(self, x: Any) -> np.ndarray:
        return np.asarray(self._predict(self._values(self._trained), self._values(self._others), x))
