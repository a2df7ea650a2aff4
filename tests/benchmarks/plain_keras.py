"""Loops on Keras by hand, digits-cnn only; see `plain_loops`.

`plain`: compile and train_on_batch. `guide`: the loop that Keras' guides write for each back end,
which does less around a step: the harder baseline, and the one that tells what transect costs.
Keras 2 makes and ends a tf.data iterator in every `train_on_batch`: 5 ms of CPU time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from plain_loops import Build, Outcome, Run, Task, loop


class _Cnn:
    """The model with its data, in the layout that is faster on the back end."""

    def __init__(self, task: Task) -> None:
        import keras

        layers = keras.layers
        self.backend = keras.backend.backend()
        first = self.backend == "torch"
        form = "channels_first" if first else "channels_last"
        # Flatten leaves the axes in their order, in both layouts.
        self.model = keras.Sequential(
            [
                layers.Input((1, 8, 8) if first else (8, 8, 1)),
                layers.Conv2D(16, 3, padding="same", activation="relu", data_format=form),
                layers.MaxPooling2D(2, data_format=form),
                layers.Conv2D(32, 3, padding="same", activation="relu", data_format=form),
                layers.MaxPooling2D(2, data_format=form),
                layers.Flatten(data_format="channels_last"),
                layers.Dense(10),
            ]
        )
        self.optimiser = keras.optimizers.SGD(task.learning_rate, momentum=task.momentum)
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        w = {name: array.astype(np.float32) for name, array in task.weights.items()}
        dense = w["7.weight"]
        if not first:
            dense = dense.reshape(10, 32, 2, 2).transpose(0, 2, 3, 1).reshape(10, 128)
        self.weights = [
            w["0.weight"].transpose(2, 3, 1, 0),
            w["0.bias"],
            w["3.weight"].transpose(2, 3, 1, 0),
            w["3.bias"],
            dense.T,
            w["7.bias"],
        ]
        axes = (0, 1, 2, 3) if first else (0, 2, 3, 1)
        self.x_train, self.x_test = (
            np.ascontiguousarray(x.transpose(axes), np.float32) for x in (task.x_train, task.x_test)
        )


def _train_on_batch(task: Task) -> Run:
    cnn = _Cnn(task)
    model, x_train, x_test = cnn.model, cnn.x_train, cnn.x_test
    model.compile(optimizer=cnn.optimiser, loss=cnn.loss)

    def step(indices: np.ndarray) -> float:
        # Keras 3 returns the mean of all losses since the metrics were reset; Keras 2 resets them.
        model.reset_metrics()
        return float(model.train_on_batch(x_train[indices], task.y_train[indices]))

    def right() -> int:
        return int((model.predict_on_batch(x_test).argmax(axis=1) == task.y_test).sum())

    def run() -> Outcome:
        model.set_weights(cnn.weights)
        return loop(step, right, task)

    return run


def _guide(task: Task) -> Run:
    cnn = _Cnn(task)
    cnn.optimiser.build(cnn.model.trainable_variables)
    return {"tensorflow": _on_tensorflow, "torch": _on_torch, "jax": _on_jax}[cnn.backend](cnn, task)


def _on_tensorflow(cnn: _Cnn, task: Task) -> Run:
    import tensorflow as tf

    model, variables = cnn.model, cnn.model.trainable_variables
    x_train, y_train = tf.constant(cnn.x_train), tf.constant(task.y_train)
    x_test, y_test = tf.constant(cnn.x_test), tf.constant(task.y_test)

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cnn.loss(y, model(x, training=True))
        cnn.optimiser.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    @tf.function  # type: ignore[untyped-decorator]
    def count() -> Any:
        hits = tf.argmax(model(x_test, training=False), 1) == y_test
        return tf.reduce_sum(tf.cast(hits, tf.int32))

    def step(indices: np.ndarray) -> float:
        return float(train_step(tf.gather(x_train, indices), tf.gather(y_train, indices)))

    return _from_start(cnn, step, lambda: int(count()), task)


def _on_torch(cnn: _Cnn, task: Task) -> Run:
    import torch

    model = cnn.model
    x_train, y_train = torch.tensor(cnn.x_train), torch.tensor(task.y_train)
    x_test, y_test = torch.tensor(cnn.x_test), torch.tensor(task.y_test)
    variables = model.trainable_variables

    def step(indices: np.ndarray) -> float:
        chosen = torch.from_numpy(indices)
        model.zero_grad()
        loss = cnn.loss(y_train[chosen], model(x_train[chosen], training=True))
        loss.backward()
        with torch.no_grad():
            cnn.optimiser.apply([variable.value.grad for variable in variables], variables)
        return float(loss.item())

    def right() -> int:
        with torch.no_grad():
            return int((model(x_test, training=False).argmax(1) == y_test).sum())

    return _from_start(cnn, step, right, task)


def _from_start(cnn: _Cnn, step: Callable[[Any], float], right: Callable[[], int], task: Task) -> Run:
    def run() -> Outcome:
        cnn.model.set_weights(cnn.weights)
        return loop(step, right, task)

    return run


def _on_jax(cnn: _Cnn, task: Task) -> Run:
    import jax

    model, numpy = cnn.model, jax.numpy
    x_test, y_test = numpy.asarray(cnn.x_test), numpy.asarray(task.y_test)

    def value(trained: Any, others: Any, x: Any, y: Any) -> tuple[Any, Any]:
        outputs, others = model.stateless_call(trained, others, x, training=True)
        return cnn.loss(y, outputs), others

    gradients = jax.value_and_grad(value, has_aux=True)

    @jax.jit  # type: ignore[untyped-decorator]
    def train_step(state: Any, x: Any, y: Any) -> tuple[Any, Any]:
        trained, others, moving = state
        (loss, others), found = gradients(trained, others, x, y)
        trained, moving = cnn.optimiser.stateless_apply(moving, found, trained)
        return loss, (trained, others, moving)

    @jax.jit  # type: ignore[untyped-decorator]
    def count(state: Any) -> Any:
        outputs, _ = model.stateless_call(*state[:2], x_test, training=False)
        return (outputs.argmax(1) == y_test).sum()

    held = [
        [variable.value for variable in some]
        for some in (model.trainable_variables, model.non_trainable_variables, cnn.optimiser.variables)
    ]
    state: Any = tuple(held)

    def step(indices: np.ndarray) -> float:
        nonlocal state
        loss, state = train_step(state, cnn.x_train[indices], task.y_train[indices])
        return float(loss)

    def run() -> Outcome:
        nonlocal state
        state = ([numpy.asarray(w) for w in cnn.weights], *state[1:])
        return loop(step, lambda: int(count(state)), task)

    return run


_BOTH: dict[str, Build] = {"plain": _train_on_batch, "guide": _guide}
BUILDERS: dict[tuple[str, str], dict[str, Build]] = {
    (name, "digits-cnn"): _BOTH for name in ("keras-tensorflow", "keras-torch", "keras-jax", "keras-2")
}
