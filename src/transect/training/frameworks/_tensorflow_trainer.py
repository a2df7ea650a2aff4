"""TensorFlow without Keras: `tf.Variable`s, `tf.nn` and compiled functions, on 2.15 and later."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.frameworks import FusedTrainer, ModelPlan, ResumableTrainer, TrainingState
from transect.training.frameworks._channels_last import order_at_end, samples_last, to_native, to_neutral
from transect.training.frameworks._tensorflow_averages import Averages
from transect.training.frameworks._tensorflow_losses import mean_loss
from transect.training.frameworks._tensorflow_model import Model, in_order
from transect.training.frameworks._tensorflow_optimisers import make_optimiser
from transect.training.layers import is_statistic


def configure(threads: int, device: str) -> Any:
    """Set up threads and devices and return the module; once per process, before any operation.

    Later calls must say the same. Raises RuntimeError when they do not, or when no GPU is found.
    """
    import tensorflow as tf

    # One operation at a time, each on `threads` threads: with more inter-op threads two operations
    # would run at once, and a cell would use more cores than it says. Nothing deadlocks: collectives
    # wait on threads of their own.
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if device != "cuda":
        tf.config.set_visible_devices([], "GPU")
        return tf
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        raise RuntimeError("TensorFlow finds no GPU")
    # One GPU per rank; the launcher numbers the ranks of a node.
    gpu = gpus[int(os.environ.get("LOCAL_RANK", "0")) % len(gpus)]
    tf.config.set_visible_devices([gpu], "GPU")
    # Else the first rank on a shared GPU would take all of its memory.
    tf.config.experimental.set_memory_growth(gpu, True)
    # A cell in fp32 computes in float32, not with TF32's 10 bits of mantissa.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    return tf


class TensorflowTrainer(FusedTrainer, ResumableTrainer):
    """Variables in TensorFlow's layouts (NHWC, HWIO); every step is one compiled function.

    `flat_gradient` is the gradient on the device, one tensor in the order of the `trained` weights;
    a strategy may replace it. One that works inside the compiled step makes its own of
    `loss_and_gradients`, `apply` and `compiled`.
    """

    def __init__(self, plan: ModelPlan) -> None:
        self.tf = tf = configure(plan.threads, plan.device)
        self._plan, self._rule = plan, plan.parameters
        precision = find_precision(plan.precision)
        self.dtype: Any = np.dtype(precision.stored)
        self._order = order_at_end(plan.layers, plan.sample)
        native = self._native(plan.weights)
        self._variables = {name: self._variable(name, value) for name, value in native.items()}
        arithmetic = tf.as_dtype(precision.multiplied)
        self._model = Model(tf, self._variables, arithmetic)
        self.trained = [v for name, v in self._variables.items() if not is_statistic(name)]
        self._optimiser = make_optimiser(tf, self._rule, self.trained, self.dtype)
        self._averages = Averages(tf, self.trained, self._rule.ema)
        self._sizes = [variable.shape.num_elements() for variable in self.trained]
        self._buffer = np.empty(sum(self._sizes), self.dtype)
        self.flat_gradient: Any = tf.zeros(sum(self._sizes), self.dtype)
        sample = samples_last(np.empty((0, *plan.sample))).shape[1:]
        self._predict = self.compiled(lambda x: self.outputs(x, False), [tf.TensorSpec((None, *sample), self.dtype)])
        self._forward_backward = self.compiled(self._flat_gradient_of)
        self._update = self.compiled(
            lambda flat, rate: self.apply(self._split(flat), rate),
            [tf.TensorSpec(self._buffer.shape, self.dtype), tf.TensorSpec((), self.dtype)],
        )
        self._step = self.compiled(self._whole_step)

    def _variable(self, name: str, value: np.ndarray) -> Any:
        tf = self.tf
        if not is_statistic(name):
            return tf.Variable(value.astype(self.dtype))
        # Under a tf.distribute strategy each rank keeps the statistics of its own batches.
        return tf.Variable(
            value.astype(self.dtype),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

    def _native(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return to_native(weights, self._plan.layers, self._plan.sample)

    def compiled(self, body: Callable[..., Any], signature: list[Any] | None = None) -> Any:
        """Return a `tf.function` that runs `body` through the current `tf.distribute` strategy."""
        run = self.tf.distribute.get_strategy().run
        return self.tf.function(lambda *given: run(body, args=given), input_signature=signature, autograph=False)

    def _on_device(self) -> Any:
        return self.tf.device("GPU:0") if self._plan.device == "cuda" else nullcontext()

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        constant = self.tf.constant
        with self._on_device():
            return constant(samples_last(x.astype(self.dtype, copy=False))), constant(y)

    def forward_backward(self, x: Any, y: Any) -> float:
        """Run the compiled gradient; the loss as a Python number waits for the device."""
        loss, self.flat_gradient = self._forward_backward(x, y)
        return float(loss)

    def gradient(self) -> np.ndarray:
        flat = self.flat_gradient
        # On a CPU the tensor's memory is read in place; TensorFlow forbids to write to it.
        np.copyto(self._buffer, memoryview(flat) if self._plan.device == "cpu" else flat.numpy())
        return self._buffer

    def set_gradient(self, flat: np.ndarray) -> None:
        """Hand the buffer to the next update; on a CPU it may be read only then."""
        with self._on_device():
            self.flat_gradient = self.tf.convert_to_tensor(flat)

    def update(self, learning_rate: float) -> None:
        self._update(self.flat_gradient, self.rate(learning_rate))

    def step(self, x: Any, y: Any, learning_rate: float) -> float:
        return float(self._step(x, y, self.rate(learning_rate)))

    def average(self) -> None:
        self._averages.move()

    def exchange_averages(self) -> None:
        self._averages.exchange()

    def finish_step(self) -> None:
        if self._plan.device == "cuda":
            self.tf.test.experimental.sync_devices()

    def predict(self, x: np.ndarray) -> np.ndarray:
        outputs: np.ndarray = self._predict(self.batch(x, np.empty(0, np.int64))[0]).numpy()
        return outputs

    def weights(self) -> dict[str, np.ndarray]:
        native = {name: variable.numpy() for name, variable in self._variables.items()}
        return to_neutral(native, self._plan.layers, self._plan.sample)

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Round the given weights to this trainer's precision; momenta stay."""
        native = self._native(weights)
        for name, variable in self._variables.items():
            variable.assign(native[name].astype(self.dtype))

    def resume(self, state: TrainingState) -> None:
        self.load(state.weights)
        native = [self._native(arrays) for arrays in state.states]
        states = [[array.astype(self.dtype) for array in arrays.values()] for arrays in native]
        self._optimiser.resume(states, state.updates)

    def traces(self) -> int:
        """Return how often functions were traced so far: constant in steady state."""
        functions = (self._predict, self._forward_backward, self._update, self._step)
        return sum(function.experimental_get_tracing_count() for function in functions)

    def rate(self, learning_rate: float) -> Any:
        """Return a scalar tensor: a Python number would be traced anew for each value."""
        return self.tf.constant(float(learning_rate), self.dtype)

    def loss_and_gradients(self, x: Any, y: Any) -> tuple[Any, list[Any]]:
        """Return tensors: the mean loss and the gradient of each trained weight."""
        with self.tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self.trained)
            loss = self.loss(x, y)
        return loss, tape.gradient(loss, self.trained)

    def _flat_gradient_of(self, x: Any, y: Any) -> tuple[Any, Any]:
        loss, gradients = self.loss_and_gradients(x, y)
        return loss, self.tf.concat([self.tf.reshape(g, [-1]) for g in gradients], 0)

    def _whole_step(self, x: Any, y: Any, learning_rate: Any) -> Any:
        loss, gradients = self.loss_and_gradients(x, y)
        self.apply(gradients, learning_rate)
        return loss

    def _split(self, flat: Any) -> list[Any]:
        parts = self.tf.split(flat, self._sizes)
        shapes = [variable.shape for variable in self.trained]
        return [self.tf.reshape(part, shape) for part, shape in zip(parts, shapes, strict=True)]

    def apply(self, gradients: list[Any], learning_rate: Any) -> None:
        if self._rule.clip_norm is not None:
            gradients, _ = self.tf.clip_by_global_norm(gradients, self.tf.constant(self._rule.clip_norm, self.dtype))
        self._optimiser.apply(gradients, learning_rate)

    def loss(self, x: Any, y: Any) -> Any:
        return mean_loss(self.tf, self._rule, self.outputs(x, True), y)

    def outputs(self, x: Any, training: bool) -> Any:
        """Return the outputs in the neutral layout, from within a compiled function."""
        outputs = self._model.outputs(self._plan.layers, x, training)
        return self.tf.cast(in_order(self.tf, outputs, self._order), self.dtype)
