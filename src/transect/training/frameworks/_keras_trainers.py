"""Trainers for Keras on TensorFlow and torch (on JAX: `_keras_jax`): each takes gradients and applies them in its own way.

A `step` is the loop that Keras' guides write for each back end, in one compiled function where
there is a compiler. `train_on_batch` does the same with more around it: measured on one core, a
small dense network took 0.35 ms a step instead of 0.1 ms on JAX, and 4.2 instead of 0.6 in Keras 2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.frameworks import FusedTrainer, ModelPlan, ResumableTrainer, TrainingState
from transect.training.frameworks._channels_last import samples_last, to_native, to_neutral
from transect.training.frameworks._keras_losses import make_loss
from transect.training.frameworks._keras_model import build_model, configure
from transect.training.frameworks._keras_optimisers import clipping, make_optimiser, set_states
from transect.training.frameworks._tensorflow_averages import Averages as TensorflowAverages
from transect.training.frameworks._torch_averages import Averages as TorchAverages


class KerasTrainer(FusedTrainer, ResumableTrainer):
    """A Keras `model` with its `optimiser` and `loss`; `keras` is the module.

    The flat gradient is in the order of `model.trainable_variables`.
    """

    data_format = "channels_last"
    # Makes of an array what the functions take.
    _tensor: Callable[[np.ndarray], Any]

    def __init__(self, plan: ModelPlan, keras: Any) -> None:
        rule = plan.parameters
        self._plan, self.dtype = plan, np.dtype(find_precision(plan.precision).stored)
        configure(keras, self.dtype.name, self.data_format)
        self.model, self._variables = build_model(keras, plan.layers, plan.sample)
        self.loss = make_loss(keras, rule)
        self.optimiser = make_optimiser(keras, rule)
        self.optimiser.build(self.model.trainable_variables)
        self._shapes = [tuple(v.shape) for v in self.model.trainable_variables]
        self._sizes = [int(np.prod(shape)) for shape in self._shapes]
        self._buffer = np.empty(sum(self._sizes), self.dtype)
        self._clipped = clipping(keras, rule)
        self.load(plan.weights)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Make the functions."""

    def _native(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return to_native(weights, self._plan.layers, self._plan.sample)

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Round the given weights to this trainer's precision; momenta stay."""
        native = self._native(weights)
        for name, variable in self._variables.items():
            variable.assign(native[name].astype(self.dtype))

    def resume(self, state: TrainingState) -> None:
        self.load(state.weights)
        native = [self._native(arrays) for arrays in state.states]
        names = {id(variable): name for name, variable in self._variables.items()}
        order = [names[id(variable)] for variable in self.model.trainable_variables]
        states = [[arrays[name].astype(self.dtype) for name in order] for arrays in native]
        set_states(self.optimiser, states, state.updates)

    def weights(self) -> dict[str, np.ndarray]:
        native = {name: np.asarray(variable.numpy()) for name, variable in self._variables.items()}
        return to_neutral(native, self._plan.layers, self._plan.sample)

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        x = x.astype(self.dtype, copy=False)
        x = samples_last(x) if self.data_format == "channels_last" else x
        return self._tensor(x), self._tensor(y)

    def update(self, learning_rate: float) -> None:
        self._set_rate(float(learning_rate))
        self._apply()

    def _set_rate(self, learning_rate: float) -> None:
        self.optimiser.set_rate(learning_rate)

    @abstractmethod
    def _apply(self) -> None: ...

    def step(self, x: Any, y: Any, learning_rate: float) -> float:
        self._set_rate(float(learning_rate))
        return self._whole_step(x, y)

    @abstractmethod
    def _whole_step(self, x: Any, y: Any) -> float: ...

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self._outputs(self.batch(x, np.empty(0, np.int64))[0])

    @abstractmethod
    def _outputs(self, x: Any) -> np.ndarray: ...


class TensorFlowTrainer(KerasTrainer):
    """Functions compiled by TensorFlow, without XLA as is Keras' default on a CPU; Keras 3 and 2.

    `flat_gradient` and `combine` are hooks for strategies, as in the trainer without Keras:
    a tensor that they may replace, and what `step` does to the list of gradients.
    """

    def _prepare(self) -> None:
        import tensorflow as tf

        model, optimiser, shapes, sizes = self.model, self.optimiser, self._shapes, self._sizes
        variables = model.trainable_variables
        self.combine: Callable[[list[Any]], list[Any]] | None = None
        self.flat_gradient: Any = tf.zeros(sum(sizes), self.dtype)
        self._tensor = tf.constant
        # Keras 3 has variables of its own around those of TensorFlow.
        held = [v if isinstance(v, tf.Variable) else v.value for v in variables]
        self._averages = TensorflowAverages(tf, held, self._plan.parameters.ema)

        def gradients(x: Any, y: Any) -> tuple[Any, list[Any]]:
            with tf.GradientTape() as tape:
                value = self.loss(y, model(x, training=True))
            return value, tape.gradient(value, variables)

        def backward(x: Any, y: Any) -> tuple[Any, Any]:
            value, parts = gradients(x, y)
            return value, tf.concat([tf.reshape(part, [-1]) for part in parts], 0)

        def apply(flat: Any) -> None:
            parts = zip(tf.split(flat, sizes), shapes, strict=True)
            whole = self._clipped([tf.reshape(part, shape) for part, shape in parts])
            optimiser.apply_gradients(zip(whole, variables, strict=True))

        def step(x: Any, y: Any) -> Any:
            value, parts = gradients(x, y)
            parts = self._clipped(self.combine(parts) if self.combine else parts)
            optimiser.apply_gradients(zip(parts, variables, strict=True))
            return value

        self._functions = [tf.function(function, autograph=False) for function in (backward, apply, step)]
        self._predict = tf.function(
            lambda x: model(x, training=False),
            autograph=False,
            input_signature=[tf.TensorSpec((None, *model.inputs[0].shape[1:]), self.dtype)],
        )

    def forward_backward(self, x: Any, y: Any) -> float:
        loss, self.flat_gradient = self._functions[0](x, y)
        return float(loss)

    def gradient(self) -> np.ndarray:
        np.copyto(self._buffer, self.flat_gradient.numpy())
        return self._buffer

    def set_gradient(self, flat: np.ndarray) -> None:
        self.flat_gradient = self._tensor(flat)

    def _apply(self) -> None:
        self._functions[1](self.flat_gradient)

    def _whole_step(self, x: Any, y: Any) -> float:
        return float(self._functions[2](x, y))

    def average(self) -> None:
        self._averages.move()

    def exchange_averages(self) -> None:
        self._averages.exchange()

    def _outputs(self, x: Any) -> np.ndarray:
        outputs: np.ndarray = self._predict(x).numpy()
        return outputs


class TorchTrainer(KerasTrainer):
    """Eager, as Keras is on torch. A strategy may `wrap` the `model`, which stays itself."""

    data_format = "channels_first"

    def _prepare(self) -> None:
        import torch

        self._torch = torch
        self._computes = self.model
        self._parameters = [v.value for v in self.model.trainable_variables]
        self._averages = TorchAverages(self._parameters, self._plan.parameters.ema)
        self._tensor = partial(torch.tensor, device=self._plan.device)

    def wrap(self, module: Any) -> None:
        """Compute losses with `module`, which holds the model; predictions stay the model's own."""
        self._computes = module

    def forward_backward(self, x: Any, y: Any) -> float:
        self.model.zero_grad()
        loss = self.loss(y, self._computes(x, training=True))
        loss.backward()
        return float(loss.detach())

    def gradient(self) -> np.ndarray:
        parts = [parameter.grad.reshape(-1).cpu() for parameter in self._parameters]
        self._torch.cat(parts, out=self._torch.from_numpy(self._buffer))
        return self._buffer

    def set_gradient(self, flat: np.ndarray) -> None:
        parts = self._torch.from_numpy(flat).split(self._sizes)
        for parameter, part in zip(self._parameters, parts, strict=True):
            parameter.grad.copy_(part.view_as(parameter))

    def _apply(self) -> None:
        with self._torch.no_grad():
            self.optimiser.apply(self._clipped([parameter.grad for parameter in self._parameters]))

    def average(self) -> None:
        self._averages.move()

    def exchange_averages(self) -> None:
        self._averages.exchange()

    def finish_step(self) -> None:
        if self._plan.device == "cuda":
            self._torch.cuda.synchronize()

    def _whole_step(self, x: Any, y: Any) -> float:
        loss = self.forward_backward(x, y)
        self._apply()
        return loss

    def _outputs(self, x: Any) -> np.ndarray:
        with self._torch.no_grad():
            outputs: np.ndarray = self.model(x, training=False).cpu().numpy()
        return outputs
