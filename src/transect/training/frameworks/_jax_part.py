"""A part of a model in JAX, with or without Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transect.training.frameworks import ModelPart, ModelPlan
from transect.training.frameworks._channels_last import samples_first
from transect.training.parts import PartByTrainer


class JaxPart(PartByTrainer):
    """`jax.vjp` within a jitted function gives a function as a result, with all that it has kept.

    Functions are compiled once for each size of a micro-batch. The tape of one under way holds how to go back,
    and the weight where the part ends the model. The trainer has a `state` of trained weights, other ones and what
    its optimiser keeps, and the pure functions `training_outputs`, `loss` and `flat`.
    """

    trainer: Any

    def __init__(self, plan: ModelPlan, part: ModelPart, build: Callable[[ModelPlan], Any]) -> None:
        super().__init__(plan, part, build)
        import jax

        trainer, inner = self.trainer, not part.begins
        self._trained = len(trainer.state[0])
        self._none = trainer.flat_gradient

        def loss(trained: Any, others: Any, x: Any, y: Any) -> Any:
            found, others = trainer.training_outputs(trained, others, x)
            return trainer.loss(y, found), others

        def taped(function: Any) -> Any:
            def run(trained: Any, others: Any, x: Any, *y: Any) -> Any:
                if inner:
                    return jax.vjp(lambda t, i: function(t, others, i, *y), trained, x, has_aux=True)
                return jax.vjp(lambda t: function(t, others, x, *y), trained, has_aux=True)

            return jax.jit(run)

        def back(flat: Any, way: Any, g: Any) -> tuple[Any, ...]:
            gradients, *rest = way(g)
            return (flat + trainer.flat(gradients) if gradients else flat), *rest

        self._forward, self._loss = taped(trainer.training_outputs), taped(loss)
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
