"""Forward and backward passes of every layer, in numpy. Shapes: batch first, NCHW."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from transect.training.layers import (
    BatchNorm2d,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Sigmoid,
)

Array = np.ndarray

_KEPT_BYTES = 2**26

# Takes the gradient of the output; returns that of the input (None where nobody needs it) and
# those of the layer's trained weights, in the order of `layers.weight_shapes`.
Backward = Callable[[Array, bool], tuple[Array | None, tuple[Array, ...]]]


def _linear(x: Array, weight: Array, bias: Array) -> tuple[Array, Backward]:
    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, ...]]:
        return (g @ weight if need else None), (g.T @ x, g.sum(axis=0))

    return x @ weight.T + bias, backward


def _convolution(x: Array, layer: Conv2d, weight: Array, bias: Array | None) -> tuple[Array, Backward]:
    """Convolution as one matrix product over unfolded windows (im2col) for each group."""
    pad, stride, groups = layer.padding, layer.stride, layer.groups
    out_channels, _, kernel, _ = weight.shape
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) if pad else x
    n, channels, height, width = padded.shape
    windows = sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    out_h, out_w = windows.shape[2:4]

    def unfold() -> Array:
        rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * out_h * out_w, groups, -1)
        return rows.transpose(1, 0, 2)

    columns = unfold()
    flat = weight.reshape(groups, out_channels // groups, -1)
    y = (columns @ flat.transpose(0, 2, 1)).transpose(1, 0, 2).reshape(n * out_h * out_w, out_channels)
    if bias is not None:
        y += bias
    y = y.reshape(n, out_h, out_w, out_channels).transpose(0, 3, 1, 2)
    # Windows overlap: large images would take kernel^2 times their memory until the backward pass.
    kept = columns if columns.nbytes <= _KEPT_BYTES else None

    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, ...]]:
        rows = g.transpose(0, 2, 3, 1).reshape(-1, out_channels)
        columns = unfold() if kept is None else kept
        parts = rows.reshape(len(rows), groups, -1).transpose(1, 2, 0)
        gradients: tuple[Array, ...] = ((parts @ columns).reshape(weight.shape),)
        if bias is not None:
            gradients += (rows.sum(axis=0),)
        if not need:
            return None, gradients
        unfolded = (parts.transpose(0, 2, 1) @ flat).transpose(1, 0, 2)
        unfolded = unfolded.reshape(n, out_h, out_w, channels, kernel, kernel)
        spread = np.zeros_like(padded)
        high, wide = stride * (out_h - 1) + 1, stride * (out_w - 1) + 1
        for i in range(kernel):
            for j in range(kernel):
                target = spread[:, :, i : i + high : stride, j : j + wide : stride]
                target += unfolded[..., i, j].transpose(0, 3, 1, 2)
        inner = spread[:, :, pad : height - pad, pad : width - pad] if pad else spread
        return inner, gradients

    return y, backward


def _pool(x: Array, layer: MaxPool2d) -> tuple[Array, Backward]:
    """Maximum over windows; a tie sends its gradient to the first maximum, as torch does."""
    size, step, pad = layer.size, layer.step, layer.padding
    n, channels = x.shape[:2]
    edges = ((0, 0), (0, 0), (pad, pad), (pad, pad))
    padded = np.pad(x, edges, constant_values=-np.inf) if pad else x
    windows = sliding_window_view(padded, (size, size), axis=(2, 3))[:, :, ::step, ::step]
    out_h, out_w = windows.shape[2:4]
    flat = windows.reshape(n, channels, out_h, out_w, size * size)
    where = flat.argmax(axis=-1)
    y = np.take_along_axis(flat, where[..., None], axis=-1)[..., 0]

    def backward(g: Array, need: bool) -> tuple[Array, tuple[Array, ...]]:
        spread = np.zeros(padded.shape, x.dtype)
        high, wide = step * (out_h - 1) + 1, step * (out_w - 1) + 1
        # One slice for each place in a window: windows may overlap, places do not.
        for i in range(size):
            for j in range(size):
                target = spread[:, :, i : i + high : step, j : j + wide : step]
                target += g * (where == i * size + j)
        end_h, end_w = padded.shape[2] - pad, padded.shape[3] - pad
        return spread[:, :, pad:end_h, pad:end_w], ()

    return y, backward


def _batch_norm(x: Array, layer: BatchNorm2d, weights: list[Array], training: bool) -> tuple[Array, Backward]:
    """Normalise each channel; in training the running statistics are moved in place."""
    weight, bias, running_mean, running_var = (w.reshape(1, -1, 1, 1) for w in weights)
    count = x.size // x.shape[1]
    if training:
        mean = x.mean(axis=(0, 2, 3), keepdims=True, dtype=x.dtype)
        centred = x - mean
        var = np.square(centred).mean(axis=(0, 2, 3), keepdims=True, dtype=x.dtype)
        running_mean += layer.momentum * (mean - running_mean)
        running_var += layer.momentum * (var * (count / max(1, count - 1)) - running_var)
    else:
        centred, var = x - running_mean, running_var
    scale = 1 / np.sqrt(var + x.dtype.type(layer.epsilon))
    normal = centred * scale

    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, ...]]:
        for_bias = g.sum(axis=(0, 2, 3), keepdims=True)
        for_weight = (g * normal).sum(axis=(0, 2, 3), keepdims=True)
        gradients = (for_weight.ravel(), for_bias.ravel())
        if not need:
            return None, gradients
        inner = g - for_bias / count - normal * (for_weight / count)
        return weight * scale * inner, gradients

    return normal * weight + bias, backward


def _layer_norm(x: Array, layer: LayerNorm) -> tuple[Array, Backward]:
    """Normalise each sample (n, features) over its features."""
    centred = x - x.mean(axis=1, keepdims=True, dtype=x.dtype)
    var = np.square(centred).mean(axis=1, keepdims=True, dtype=x.dtype)
    scale = 1 / np.sqrt(var + x.dtype.type(layer.epsilon))
    normal = centred * scale

    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, ...]]:
        if not need:
            return None, ()
        mean, along = (part.mean(axis=1, keepdims=True, dtype=x.dtype) for part in (g, g * normal))
        return scale * (g - mean - normal * along), ()

    return normal, backward


def forward(layer: Layer, x: Array, weights: list[Array], training: bool = True) -> tuple[Array, Backward]:
    """Run one layer that has no others inside; the returned function runs it backwards.

    `weights` are the layer's own, in the order of `layers.weight_shapes`.
    """
    match layer:
        case Linear():
            return _linear(x, *weights)
        case Conv2d():
            return _convolution(x, layer, weights[0], weights[1] if layer.bias else None)
        case BatchNorm2d():
            return _batch_norm(x, layer, weights, training)
        case LayerNorm():
            return _layer_norm(x, layer)
        case MaxPool2d():
            return _pool(x, layer)
        case GlobalAveragePool():
            area = x.shape[2] * x.shape[3]
            return x.mean(axis=(2, 3), dtype=x.dtype), lambda g, need: (
                np.broadcast_to((g / area)[:, :, None, None], x.shape),
                (),
            )
        case ReLU():
            return np.maximum(x, 0), lambda g, need: (g * (x > 0), ())
        case Sigmoid():
            # exp of a negative number only: no overflow for either sign.
            z = np.exp(-np.abs(x))
            y = (np.where(x >= 0, 1, z) / (1 + z)).astype(x.dtype, copy=False)
            return y, lambda g, need: (g * y * (1 - y), ())
        case Flatten():
            return x.reshape(len(x), -1), lambda g, need: (g.reshape(x.shape), ())
    raise TypeError(f"no numpy code for layer {layer!r}: add it to {__name__}")
