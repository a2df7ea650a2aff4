"""Keras models made from the neutral layers, with the defaults of Keras set equal to the rule.

The same code for Keras 3, whatever its back end, and for Keras 2. Kernels are HWIO in both data
formats, and Keras' `Flatten` gives features in the order H, W, C in both: `_channels_last` holds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from transect.training.frameworks._channels_last import order_at_end
from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Shape,
    Sigmoid,
    inner,
)

_PARTS = {
    "kernel": "weight",
    "gamma": "weight",
    "bias": "bias",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}


def configure(keras: Any, floatx: str, data_format: str) -> None:
    """Set what layers take as their default: "float32" or "float64", and where channels are.

    On torch and JAX Keras 3 promotes float64 to float32, "to be aligned with JAX's default
    behavior", wherever two arrays meet. For float64 that entry of its table is set right: there
    is no public way, and the float64 cells are those that show equality with the reference.
    """
    keras.backend.set_floatx(floatx)
    keras.backend.set_image_data_format(data_format)
    if floatx == "float64" and hasattr(keras, "ops"):
        from keras.src.backend.common import dtypes

        if "float64" not in dtypes.BIT64_TO_BIT32_DTYPE:
            raise RuntimeError(f"float64 was tried with Keras 3.15.1, not with {keras.__version__}")
        dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"


def _batch_norm(keras: Any) -> type[Any]:
    class SampleVariance(keras.layers.BatchNormalization):
        """Keras averages the population variance; only Keras 2's fused kernel the sample one."""

        def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
            """Normalise; then stretch what this batch added by n / (n - 1)."""
            if not training or getattr(self, "fused", False):
                return super().call(inputs, training=training, mask=mask)
            count = prod(inputs.shape) // inputs.shape[self._channel_axis()]
            kept = self.moving_variance * self.momentum
            outputs = super().call(inputs, training=training, mask=mask)
            added = self.moving_variance - kept
            self.moving_variance.assign(kept + added * (count / max(1, count - 1)))
            return outputs

        def _channel_axis(self) -> int:
            # Keras 2 turns the axis into a list when the layer is built.
            return int(self.axis if isinstance(self.axis, int) else self.axis[0])

    return SampleVariance


class _Builder:
    """Applies layers to symbolic tensors and notes their variables."""

    def __init__(self, keras: Any) -> None:
        self._layers = keras.layers
        self._norm = _batch_norm(keras)
        self._first = keras.backend.image_data_format() == "channels_first"
        self._pad = operations(keras).pad
        self.variables: dict[str, Any] = {}

    def chain(self, parts: tuple[Layer, ...], x: Any, prefix: str = "") -> Any:
        for index, layer in enumerate(parts):
            x = self._apply(layer, x, f"{prefix}{index}")
        return x

    def _noted(self, keras_layer: Any, x: Any, name: str) -> Any:
        y = keras_layer(x)
        for attribute, neutral in _PARTS.items():
            variable = getattr(keras_layer, attribute, None)
            if variable is not None:
                self.variables[f"{name}.{neutral}"] = variable
        return y

    def _apply(self, layer: Layer, x: Any, name: str) -> Any:
        make = self._layers
        match layer:
            case Linear(outputs=outputs):
                return self._noted(make.Dense(outputs), x, name)
            case Conv2d(_, outputs, kernel, padding, stride, bias):
                # Keras pads strided convolutions on one side more than on the other.
                same = stride == 1 and 2 * padding == kernel - 1 and padding > 0
                if padding and not same:
                    x = make.ZeroPadding2D(padding)(x)
                cut = "same" if same else "valid"
                convolution = make.Conv2D(outputs, kernel, stride, cut, groups=layer.groups, use_bias=bias)
                return self._noted(convolution, x, name)
            case BatchNorm2d(_, momentum, epsilon):
                axis = 1 if self._first else -1
                norm = self._norm(axis=axis, momentum=1 - momentum, epsilon=epsilon)
                # TensorFlow makes a float32 of a Python number before it casts that to a float64.
                norm.momentum = np.float64(norm.momentum)
                return self._noted(norm, x, name)
            case MaxPool2d(size, _, padding):
                if padding:
                    sides = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
                    if self._first:
                        sides = [sides[0], sides[3], *sides[1:3]]
                    # Not ZeroPadding2D: a zero wins over negative numbers.
                    x = make.Lambda(lambda x: self._pad(x, sides, constant_values=float("-inf")))(x)
                return make.MaxPooling2D(size, layer.step)(x)
            case GlobalAveragePool():
                return make.GlobalAveragePooling2D()(x)
            case ReLU():
                return make.Activation("relu")(x)
            case Sigmoid():
                return make.Activation("sigmoid")(x)
            case Flatten() if len(x.shape) == 3:
                # With channels first Keras would take the first of two axes for channels.
                return make.Reshape((prod(x.shape[1:]),))(x)
            case Flatten():
                return make.Flatten()(x)
            case Residual(body, shortcut):
                ends = [self.chain(body, x, f"{name}.body."), self.chain(shortcut, x, f"{name}.shortcut.")]
                return make.Add()(ends)
            case Branches(branches):
                ends = [self.chain(branch, x, f"{name}.{number}.") for number, branch in enumerate(branches)]
                return make.Concatenate(1 if self._first else -1)(ends) if len(ends) > 1 else ends[0]
        raise TypeError(f"no Keras layer for {layer!r}: add it to {__name__}")


def operations(keras: Any) -> Any:
    if hasattr(keras, "ops"):
        return keras.ops
    import tensorflow as tf

    return SimpleNamespace(cast=tf.cast, one_hot=tf.one_hot, pad=tf.pad, reshape=tf.reshape, sum=tf.reduce_sum)


def _amount(layers: tuple[Layer, ...]) -> int:
    return len(layers) + sum(_amount(chain) for layer in layers for chain in inner(layer).values())


@contextmanager
def _deep_enough(layers: tuple[Layer, ...]) -> Iterator[None]:
    """Let Keras walk back through all layers: it calls itself once for each, of which a layer here becomes a few."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(usual + 4 * _amount(layers))
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def build_model(keras: Any, layers: tuple[Layer, ...], sample: Shape) -> tuple[Any, dict[str, Any]]:
    """Return the functional model, and its variables by their neutral names.

    `sample` is NCHW without N. The weights are Keras' own and meant to be replaced. Outputs are in the
    neutral layout.
    """
    builder = _Builder(keras)
    order = order_at_end(layers, sample)
    images_last = keras.backend.image_data_format() == "channels_last"
    if len(sample) == 3 and images_last:
        sample = (*sample[1:], sample[0])
    inputs = keras.Input(sample)
    outputs = builder.chain(layers, inputs)
    if order is not None:
        channels, height, width = order
        outputs = keras.layers.Reshape((height, width, channels))(outputs)
    if order is not None or (images_last and len(outputs.shape) == 4):
        outputs = keras.layers.Permute((3, 1, 2))(outputs)
    if order is not None:
        outputs = keras.layers.Reshape((prod(order),))(outputs)
    with _deep_enough(layers):
        return keras.Model(inputs, outputs), builder.variables
