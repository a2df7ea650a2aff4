"""A part of a model in Keras on JAX and on torch; on TensorFlow: `_tensorflow_part`."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks import ModelPart, ModelPlan
from transect.training.frameworks._channels_last import samples_first
from transect.training.frameworks._keras_jax import JaxTrainer
from transect.training.frameworks._keras_trainers import TorchTrainer
from transect.training.parts import PartByTrainer


class KerasJaxPart(PartByTrainer):
    """`jax.vjp` within a jitted function gives a function as a result, with all that it has kept.

    Functions are compiled once for each size of a micro-batch.
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
        # Of each micro-batch under way: how to go back, and the weight where the part ends the model.
        self._tapes: dict[int, tuple[Any, float]] = {}

    def begin_step(self) -> None:
        """Forget gradients and tapes."""
        self.trainer.flat_gradient = self._none
        self._tapes.clear()

    def _pass(self, i: int, function: Any, x: Any, y: tuple[Any, ...], weight: float) -> Any:
        if not self.part.begins:
            x, _ = self.trainer.batch(x, np.empty(0, np.int64))
        trained, others, moving = self.trainer.state
        end, way, others = function(trained, others, x, *y)
        self.trainer.state = (trained, others, moving)
        self._tapes[i] = way, weight
        return end

    def forward(self, i: int, x: Any) -> np.ndarray:
        """Return the outputs: the array is JAX's own memory."""
        return np.asarray(self._pass(i, self._forward, x, (), 1.0))

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        """Return the mean loss as a Python number, which waits for it."""
        return float(self._pass(i, self._loss, x, (y,), weight))

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        """Call what the forward pass gave."""
        way, weight = self._tapes.pop(i)
        given = self.trainer.dtype.type(weight) if g is None else g
        self.trainer.flat_gradient, *rest = self._back(self.trainer.flat_gradient, way, given)
        return samples_first(np.asarray(rest[0])) if rest else None

    def update(self, learning_rate: float) -> None:
        """Let the trainer do it, where there is something to update."""
        if self._trained:
            self.trainer.update(learning_rate)

    def finish_step(self) -> None:
        """Wait for the update."""
        if self._trained:
            self.trainer.finish_step()


class KerasTorchPart(PartByTrainer):
    """Gradients of micro-batches add up in autograd's own place."""

    trainer: TorchTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart, keras: Any) -> None:
        super().__init__(plan, part, lambda own: TorchTrainer(own, keras))
        import torch

        self._torch = torch
        # Of each micro-batch under way: what came in, what to go back from, and with which weight.
        self._tapes: dict[int, tuple[Any, Any, float]] = {}

    def begin_step(self) -> None:
        """Forget gradients and tapes."""
        self.trainer.model.zero_grad()
        self._tapes.clear()

    def _inputs(self, x: Any) -> Any:
        """Return a leaf of autograd's graph, whose gradient the part before will ask for."""
        if self.part.begins:
            return x
        return self.trainer.batch(x, np.empty(0, np.int64))[0].requires_grad_()

    def forward(self, i: int, x: Any) -> np.ndarray:
        """Return the outputs, in one piece."""
        inputs = self._inputs(x)
        outputs = self.trainer.model(inputs, training=True)
        self._tapes[i] = inputs, outputs, 1.0
        return np.ascontiguousarray(outputs.detach().numpy())

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        """Return the mean loss over the micro-batch."""
        inputs = self._inputs(x)
        loss = self.trainer.loss(y, self.trainer.model(inputs, training=True))
        self._tapes[i] = inputs, loss, weight
        return float(loss.detach())

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        """Run autograd from the outputs or the loss to the inputs."""
        torch = self._torch
        inputs, end, weight = self._tapes.pop(i)
        # Layers without weights at the model's beginning leave nothing to compute.
        if end.requires_grad:
            end.backward(torch.full_like(end, weight) if g is None else torch.tensor(g))
        return None if self.part.begins else np.ascontiguousarray(inputs.grad.numpy())

    def gradient(self) -> np.ndarray:
        """Return the trainer's, where there is one."""
        return self.trainer.gradient() if self.trainer.model.trainable_variables else np.empty(0)
