"""The forward pass of the neutral layers in TensorFlow's operations, channels last."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Shape,
    Sigmoid,
)


class Model:
    """Computes with `variables`, named as in the neutral layers, in TensorFlow's layouts.

    Matrix products, convolutions and activations are in `arithmetic`, a TensorFlow dtype.
    """

    def __init__(self, tf: Any, variables: dict[str, Any], arithmetic: Any) -> None:
        self.tf, self.variables, self.arithmetic = tf, variables, arithmetic

    def outputs(self, layers: tuple[Layer, ...], x: Any, training: bool) -> Any:
        """Return the outputs for x (n, H, W, C) or (n, features).

        Training normalises by the batch and moves the running statistics.
        """
        return self._chain(layers, self.tf.cast(x, self.arithmetic), training, "")

    def _chain(self, layers: tuple[Layer, ...], x: Any, training: bool, prefix: str) -> Any:
        for index, layer in enumerate(layers):
            x = self._layer(layer, x, training, f"{prefix}{index}.")
        return x

    def _weight(self, name: str) -> Any:
        return self.tf.cast(self.variables[name], self.arithmetic)

    def _layer(self, layer: Layer, x: Any, training: bool, name: str) -> Any:
        tf = self.tf
        match layer:
            case Linear():
                return x @ self._weight(f"{name}weight") + self._weight(f"{name}bias")
            case Conv2d(_, _, kernel, padding, stride):
                # "SAME" is faster, but pads one side more than the other when the stride is 2.
                even = stride == 1 and 0 < 2 * padding == kernel - 1
                sides = "SAME" if even else _sides(padding)
                x = self._convolution(x, self._weight(f"{name}weight"), stride, sides, layer)
                return tf.nn.bias_add(x, self._weight(f"{name}bias")) if layer.bias else x
            case BatchNorm2d():
                return self._batch_norm(layer, x, training, name)
            case LayerNorm(_, epsilon):
                mean, variance = tf.nn.moments(x, [-1], keepdims=True)
                return tf.nn.batch_normalization(x, mean, variance, None, None, epsilon)
            case MaxPool2d(size, _, padding):
                return tf.nn.max_pool2d(x, size, layer.step, _sides(padding))
            case GlobalAveragePool():
                return tf.reduce_mean(x, [1, 2])
            case ReLU():
                return tf.nn.relu(x)
            case Sigmoid():
                return tf.sigmoid(x)
            case Flatten():
                return tf.reshape(x, [-1, np.prod(x.shape[1:], dtype=int)])
            case Residual(body, shortcut):
                shortcut_output = self._chain(shortcut, x, training, f"{name}shortcut.")
                return self._chain(body, x, training, f"{name}body.") + shortcut_output
            case Branches(branches):
                ends = [self._chain(branch, x, training, f"{name}{number}.") for number, branch in enumerate(branches)]
                return tf.concat(ends, -1)
        raise TypeError(f"no TensorFlow operation for layer {layer}")

    def _convolution(self, x: Any, weight: Any, stride: int, sides: Any, layer: Conv2d) -> Any:
        """Convolve; with groups by what TensorFlow has for them on a CPU: its own operation is for GPUs."""
        tf, groups = self.tf, layer.groups
        if groups == 1:
            return tf.nn.conv2d(x, weight, stride, sides)
        if groups == layer.inputs:
            shape = (layer.kernel, layer.kernel, layer.inputs, layer.outputs // groups)
            return tf.nn.depthwise_conv2d(x, tf.reshape(weight, shape), (1, stride, stride, 1), sides)
        pairs = zip(tf.split(x, groups, -1), tf.split(weight, groups, -1), strict=True)
        return tf.concat([tf.nn.conv2d(part, own, stride, sides) for part, own in pairs], -1)

    def _batch_norm(self, layer: BatchNorm2d, x: Any, training: bool, name: str) -> Any:
        tf, variables = self.tf, self.variables
        scale, offset = variables[f"{name}weight"], variables[f"{name}bias"]
        running = [variables[f"{name}running_mean"], variables[f"{name}running_var"]]
        if x.dtype != tf.float64:
            result = tf.raw_ops.FusedBatchNormV3(
                x=x,
                scale=scale,
                offset=offset,
                epsilon=layer.epsilon,
                is_training=training,
                mean=[] if training else running[0],
                variance=[] if training else running[1],
            )
            # Its variance is the sample variance in training, though it divides by the other.
            x, *new = result[:3]
        else:
            # The fused operation has no float64.
            mean, variance = tf.nn.moments(x, [0, 1, 2]) if training else running
            x = tf.nn.batch_normalization(x, mean, variance, offset, scale, layer.epsilon)
            count = tf.cast(tf.reduce_prod(tf.shape(x)[:3]), tf.float64)
            new = [mean, variance * count / (count - 1)]
        if training:
            for statistic, value in zip(running, new, strict=True):
                statistic.assign(statistic + layer.momentum * (value - statistic))
        return x


def in_order(tf: Any, outputs: Any, order: Shape | None) -> Any:
    """Bring outputs to the neutral layout: images, and features flattened from `order` (C, H, W)."""
    if order is not None:
        channels, height, width = order
        outputs = tf.reshape(outputs, (-1, height, width, channels))
    if len(outputs.shape) == 4:
        outputs = tf.transpose(outputs, (0, 3, 1, 2))
    return outputs if order is None else tf.reshape(outputs, (-1, np.prod(order, dtype=int)))


def _sides(padding: int) -> list[list[int]] | str:
    if not padding:
        return "VALID"
    return [[0, 0], [padding, padding], [padding, padding], [0, 0]]
