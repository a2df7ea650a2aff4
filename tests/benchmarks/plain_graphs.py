"""Loops on TensorFlow and MXNet by hand, digits-cnn only; see `plain_loops`."""

from __future__ import annotations

from typing import Any

import numpy as np
from plain_loops import Build, Outcome, Run, Task, loop


def tensorflow_loop(task: Task, fed: bool = False) -> Run:
    """One compiled function for a step. `fed`: it is given the batch, as from a data set that is
    too large to be a tensor; else it takes the batch out of one, which no trainer here does.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    x_train, x_test = (tf.constant(x.transpose(0, 2, 3, 1), tf.float32) for x in (task.x_train, task.x_test))
    y_train, y_test = tf.constant(task.y_train), tf.constant(task.y_test)
    w = {name: array.astype(np.float32) for name, array in task.weights.items()}
    dense = w["7.weight"].reshape(10, 32, 2, 2).transpose(2, 3, 1, 0).reshape(128, 10)
    first = [
        w["0.weight"].transpose(2, 3, 1, 0),
        w["0.bias"],
        w["3.weight"].transpose(2, 3, 1, 0),
        w["3.bias"],
        dense,
        w["7.bias"],
    ]
    variables = [tf.Variable(array) for array in first]
    velocities = [tf.Variable(tf.zeros_like(one), trainable=False) for one in variables]

    def model(x: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = variables
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w1, 1, "SAME"), b1))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w2, 1, "SAME"), b2))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        return tf.reshape(x, [-1, 128]) @ w3 + b3

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            loss = tf.reduce_mean(each)
        found = tape.gradient(loss, variables)
        for variable, velocity, gradient in zip(variables, velocities, found, strict=True):
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle, accum=velocity.handle, lr=task.learning_rate, grad=gradient, momentum=task.momentum
            )
        return loss

    @tf.function  # type: ignore[untyped-decorator]
    def train_step_of(indices: Any) -> Any:
        return train_step(tf.gather(x_train, indices), tf.gather(y_train, indices))

    x_numpy, y_numpy = x_train.numpy(), y_train.numpy()

    def step(indices: np.ndarray) -> float:
        # As tensors, or else each new array of numbers would be a trace of its own.
        if fed:
            x, y = x_numpy[indices], y_numpy[indices]
            return float(train_step(tf.constant(x), tf.constant(y)))
        return float(train_step_of(tf.constant(indices)))

    @tf.function  # type: ignore[untyped-decorator]
    def count() -> Any:
        return tf.reduce_sum(tf.cast(tf.argmax(model(x_test), 1) == y_test, tf.int32))

    def run() -> Outcome:
        for variable, array in zip(variables, first, strict=True):
            variable.assign(array)
        return loop(step, lambda: int(count()), task)

    return run


def mxnet_loop(task: Task) -> Run:
    """Gluon, hybridized, gluon.Trainer."""
    import mxnet as mx
    from mxnet import autograd, gluon, nd
    from mxnet.gluon import nn

    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(16, 3, padding=1, in_channels=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Conv2D(32, 3, padding=1, in_channels=16, activation="relu"),
        nn.MaxPool2D(2),
        nn.Flatten(),
        nn.Dense(10, in_units=128),
    )
    net.initialize(ctx=mx.cpu())
    net.hybridize()
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    loss_of.hybridize()
    settings = {"learning_rate": task.learning_rate, "momentum": task.momentum}
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings)
    x_train, x_test = nd.array(task.x_train), nd.array(task.x_test)
    y_train = nd.array(task.y_train)
    parameters = [value for place in (0, 2, 5) for value in (net[place].weight, net[place].bias)]
    first = [task.weights[f"{place}.{part}"] for place in (0, 3, 7) for part in ("weight", "bias")]

    def step(indices: np.ndarray) -> float:
        chosen = nd.array(indices)
        x, y = nd.take(x_train, chosen), nd.take(y_train, chosen)
        with autograd.record():
            loss = loss_of(net(x), y).mean()
        loss.backward()
        trainer.step(1)
        return float(loss.asscalar())

    def right() -> int:
        return int((net(x_test).asnumpy().argmax(axis=1) == task.y_test).sum())

    def run() -> Outcome:
        for parameter, array in zip(parameters, first, strict=True):
            parameter.set_data(nd.array(array))
        return loop(step, right, task)

    return run


BUILDERS: dict[tuple[str, str], dict[str, Build]] = {
    ("tensorflow", "digits-cnn"): {"plain": tensorflow_loop, "fed": lambda task: tensorflow_loop(task, fed=True)},
    ("mxnet", "digits-cnn"): {"plain": mxnet_loop},
}
