"""The forward pass of the neutral layers in JAX's operations, channels last: pure functions of the weights."""

from __future__ import annotations

from math import prod
from typing import Any

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


class LayeredNetwork:
    """Computes with weights named as in the neutral layers, in layouts with channels last.

    Matrix products, convolutions and activations are in the dtype `arithmetic`. Outputs are in the neutral
    layout, `order` being the (C, H, W) that features at their end were flattened from, or None.
    """

    def __init__(self, layers: tuple[Layer, ...], order: Shape | None, arithmetic: str) -> None:
        self._layers, self._order, self._arithmetic = layers, order, arithmetic

    def __call__(self, weights: dict[str, Any], x: Any, training: bool) -> tuple[Any, dict[str, Any]]:
        """Return the outputs for x (n, H, W, C) or (n, features), in its dtype, and the new running statistics.

        Training normalises by the batch; prediction changes no statistics.
        """
        statistics: dict[str, Any] = {}
        stored = x.dtype
        given = {name: w.astype(self._arithmetic) if w.ndim > 1 else w for name, w in weights.items()}
        x = self._chain(self._layers, given, statistics, x.astype(self._arithmetic), training, "")
        return _neutral(x, self._order).astype(stored), statistics

    def _chain(
        self, layers: tuple[Layer, ...], weights: Any, statistics: Any, x: Any, training: bool, prefix: str
    ) -> Any:
        import jax

        for index, layer in enumerate(layers):
            name = f"{prefix}{index}."
            match layer:
                case BatchNorm2d():
                    x = _batch_norm(layer, weights, statistics, x, training, name)
                case Residual(body, shortcut):
                    beside = self._chain(shortcut, weights, statistics, x, training, f"{name}shortcut.")
                    x = self._chain(body, weights, statistics, x, training, f"{name}body.") + beside
                case Branches(branches):
                    ends = [
                        self._chain(branch, weights, statistics, x, training, f"{name}{number}.")
                        for number, branch in enumerate(branches)
                    ]
                    x = jax.numpy.concatenate(ends, -1)
                case _:
                    x = _layer(layer, weights, x, name)
        return x


def _layer(layer: Layer, weights: dict[str, Any], x: Any, name: str) -> Any:
    import jax
    from jax import lax

    match layer:
        case Linear():
            return x @ weights[f"{name}weight"] + weights[f"{name}bias"].astype(x.dtype)
        case Conv2d(_, _, _, padding, stride):
            sides, orders = [(padding, padding)] * 2, ("NHWC", "HWIO", "NHWC")
            x = lax.conv_general_dilated(
                x,
                weights[f"{name}weight"],
                (stride, stride),
                sides,
                dimension_numbers=orders,
                feature_group_count=layer.groups,
            )
            return x + weights[f"{name}bias"].astype(x.dtype) if layer.bias else x
        case LayerNorm(_, epsilon):
            centred = x - x.mean(-1, keepdims=True)
            return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        case MaxPool2d(size, _, padding):
            sides = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
            return lax.reduce_window(
                x, -jax.numpy.inf, lax.max, (1, size, size, 1), (1, layer.step, layer.step, 1), sides
            )
        case GlobalAveragePool():
            return x.mean((1, 2))
        case ReLU():
            return jax.nn.relu(x)
        case Sigmoid():
            return jax.nn.sigmoid(x)
        case Flatten():
            return x.reshape(len(x), prod(x.shape[1:]))
    raise TypeError(f"no operation of JAX for layer {layer}")


def _batch_norm(layer: BatchNorm2d, weights: Any, statistics: Any, x: Any, training: bool, name: str) -> Any:
    """Normalise in the precision of the statistics, whatever the arithmetic of the rest is."""
    from jax import lax

    scale, offset = weights[f"{name}weight"], weights[f"{name}bias"]
    names = [f"{name}running_mean", f"{name}running_var"]
    mean, variance = running = [weights[key] for key in names]
    values = x.astype(mean.dtype)
    if training:
        mean = values.mean((0, 1, 2))
        variance = ((values - mean) ** 2).mean((0, 1, 2))
        count = x.size // x.shape[-1]
        for key, old, new in zip(names, running, (mean, variance * (count / (count - 1))), strict=True):
            statistics[key] = old + layer.momentum * (lax.stop_gradient(new) - old)
    normal = (values - mean) * lax.rsqrt(variance + layer.epsilon)
    return (normal * scale + offset).astype(x.dtype)


def _neutral(outputs: Any, order: Shape | None) -> Any:
    """Bring outputs to the neutral layout: images, and features flattened from `order` (C, H, W)."""
    n = len(outputs)
    if order is not None:
        channels, height, width = order
        outputs = outputs.reshape(n, height, width, channels)
    if outputs.ndim == 4:
        outputs = outputs.transpose(0, 3, 1, 2)
    return outputs if order is None else outputs.reshape(n, -1)
