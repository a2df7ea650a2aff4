"""Layers of many clients at once, in numpy. Activations: all clients' samples one behind the other, images NHWC.

Channels come last, so that what is unfolded, pooled and normalised are runs of neighbours. Weights and their gradients
have a first axis of clients. Each client is computed by itself, in the same order alone and beside others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from transect.training.frameworks._numpy_layers import Backward, forward
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

# Channels, of which three are a run too short to be worth its call.
_FEW = 4

# Which see numbers or samples, whosever they are, and no images: as for one client.
_AS_ALONE = (ReLU, Sigmoid, LayerNorm)
KINDS = (Linear, Conv2d, BatchNorm2d, MaxPool2d, GlobalAveragePool, Flatten, *_AS_ALONE)


def stacked(layer: Layer, name: str, arrays: Array) -> Array:
    """Return a layer's arrays of clients (m, ...) in the layout that `run` takes them in, a view.

    Of a convolution (m, groups, kernel, kernel, inputs / groups, outputs / groups), else the neutral one.
    """
    if not isinstance(layer, Conv2d) or not name.endswith("weight"):
        return arrays
    grouped = arrays.reshape(len(arrays), layer.groups, layer.outputs // layer.groups, *arrays.shape[2:])
    return grouped.transpose(0, 1, 4, 5, 3, 2)


def run(layer: Layer, x: Array, weights: list[Array], training: bool = True) -> tuple[Array, Backward]:
    """Run one layer that has no others inside, as `_numpy_layers.forward` does."""
    match layer:
        case Linear():
            return _linear(x, *weights)
        case Conv2d():
            return _convolution(x, layer, weights[0], weights[1] if layer.bias else None)
        case BatchNorm2d():
            return _batch_norm(x, layer, weights)
        case MaxPool2d():
            return _pool(x, layer)
        case GlobalAveragePool():
            area = x.shape[1] * x.shape[2]
            return x.mean(axis=(1, 2), dtype=x.dtype), lambda g, need: (
                np.broadcast_to((g / area)[:, None, None], x.shape),
                (),
            )
        case Flatten():
            # Channels first, as weights behind it have them.
            first = np.moveaxis(x, -1, 1)
            return first.reshape(len(x), -1), lambda g, need: (np.moveaxis(g.reshape(first.shape), 1, -1), ())
    if isinstance(layer, _AS_ALONE):
        return forward(layer, x, weights, training)
    raise TypeError(f"no code for layer {layer!r} of many clients: add it to {__name__}")


def _linear(x: Array, weight: Array, bias: Array) -> tuple[Array, Backward]:
    clients, outputs, inputs = weight.shape
    rows = x.reshape(clients, -1, inputs)
    y = rows @ weight.swapaxes(1, 2)
    y += bias[:, None]

    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, ...]]:
        g = g.reshape(clients, -1, outputs)
        return (g @ weight).reshape(-1, inputs) if need else None, (g.swapaxes(1, 2) @ rows, g.sum(axis=1))

    return y.reshape(-1, outputs), backward


def _padded(x: Array, pad: int, value: float) -> Array:
    """Return images with a frame of `value`; `np.pad` takes longer than a small convolution."""
    if not pad:
        return x
    n, height, width, channels = x.shape
    padded = np.full((n, height + 2 * pad, width + 2 * pad, channels), value, x.dtype)
    padded[:, pad : pad + height, pad : pad + width] = x
    return padded


def _places(array: Array, size: int, step: int, height: int, width: int) -> Iterator[Array]:
    """Yield for each place in a window, row by row, what stands there in all of height x width windows."""
    for i in range(size):
        for j in range(size):
            yield array[:, i : i + step * (height - 1) + 1 : step, j : j + step * (width - 1) + 1 : step]


def _unfolded(images: Array, clients: int, groups: int, size: int, step: int, ones: bool = False) -> Array:
    """Return what each window of images (n, height, width, channels) sees, (clients, groups, windows, numbers).

    A window's numbers are row by row, its channels last; with `ones` a 1 is behind them.
    """
    height, width = ((length - size) // step + 1 for length in images.shape[1:3])
    batch, inputs = len(images) // clients, images.shape[3] // groups
    image, row, column, channel = images.strides
    # Not by `sliding_window_view`, which takes as long as a small convolution.
    windows = as_strided(
        images,
        (clients, groups, batch, height, width, size, size, inputs),
        (batch * image, inputs * channel, image, step * row, step * column, row, column, channel),
    )
    seen, rows = size * size * inputs, batch * height * width
    # In memory a window's numbers are neighbours, or of few channels a place's in all windows: runs are longer.
    if inputs < _FEW:
        columns = np.empty((clients, groups, seen + ones, rows), images.dtype).swapaxes(2, 3)
    else:
        columns = np.empty((clients, groups, rows, seen + ones), images.dtype)
    columns[..., :seen].reshape(windows.shape)[...] = windows
    if ones:
        columns[..., -1] = 1
    return columns


def _convolution(x: Array, layer: Conv2d, weight: Array, bias: Array | None) -> tuple[Array, Backward]:
    """One matrix product over unfolded windows for each client and group; the bias is the weight of ones."""
    clients, groups, size, _, inputs, outputs = weight.shape
    pad, step = layer.padding, layer.stride
    padded = _padded(x, pad, 0)
    height, width = ((length - size) // step + 1 for length in padded.shape[1:3])
    columns = _unfolded(padded, clients, groups, size, step, bias is not None)
    matrix = weight.reshape(clients, groups, -1, outputs)
    if bias is not None:
        matrix = np.concatenate([matrix, bias.reshape(clients, groups, 1, outputs)], axis=2)
    y = (columns @ matrix).swapaxes(1, 2).reshape(len(x), height, width, -1)

    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, ...]]:
        parts = g.reshape(clients, -1, groups, outputs).swapaxes(1, 2)
        found = columns.swapaxes(2, 3) @ parts
        gradients: tuple[Array, ...] = (found[:, :, : size * size * inputs].reshape(weight.shape),)
        if bias is not None:
            gradients += (found[:, :, -1].reshape(clients, -1),)
        if not need:
            return None, gradients
        # A number of the input is seen by the windows around it: their gradients are unfolded, the kernel is turned.
        frame = (length + size - 1 for length in padded.shape[1:3])
        apart = np.zeros((len(x), *frame, groups * outputs), x.dtype)
        last = size - 1 + step * (height - 1), size - 1 + step * (width - 1)
        apart[:, size - 1 : last[0] + 1 : step, size - 1 : last[1] + 1 : step] = g
        seen = apart[:, pad : pad + x.shape[1] + size - 1, pad : pad + x.shape[2] + size - 1]
        turned = weight[:, :, ::-1, ::-1].swapaxes(4, 5).reshape(clients, groups, -1, inputs)
        inner = _unfolded(seen, clients, groups, size, 1) @ turned
        return inner.swapaxes(1, 2).reshape(x.shape), gradients

    return y, backward


def _pool(x: Array, layer: MaxPool2d) -> tuple[Array, Backward]:
    """Maximum over windows; a tie sends its gradient to the first maximum."""
    size, step, pad = layer.size, layer.step, layer.padding
    padded = _padded(x, pad, -np.inf)
    height, width = ((length - size) // step + 1 for length in padded.shape[1:3])
    first, *others = _places(padded, size, step, height, width)
    y = first.copy()
    for other in others:
        np.maximum(y, other, out=y)

    def backward(g: Array, need: bool) -> tuple[Array, tuple[Array, ...]]:
        spread = np.zeros_like(padded)
        free = np.ones(y.shape, bool)
        places = (_places(array, size, step, height, width) for array in (padded, spread))
        for value, target in zip(*places, strict=True):
            here = value == y
            here &= free
            free ^= here
            if step < size:
                target += g * here
            else:
                np.multiply(g, here, out=target)
        return spread[:, pad : pad + x.shape[1], pad : pad + x.shape[2]], ()

    return y, backward


def _batch_norm(x: Array, layer: BatchNorm2d, weights: list[Array]) -> tuple[Array, Backward]:
    """Normalise each client's channels in its training; running statistics are moved in place."""
    weight, bias, running_mean, running_var = (w[:, None] for w in weights)
    rows = x.reshape(len(weight), -1, layer.channels)
    count = rows.shape[1]
    mean = rows.mean(axis=1, keepdims=True, dtype=x.dtype)
    centred = rows - mean
    var = np.square(centred).mean(axis=1, keepdims=True, dtype=x.dtype)
    running_mean += layer.momentum * (mean - running_mean)
    running_var += layer.momentum * (var * (count / max(1, count - 1)) - running_var)
    scale = 1 / np.sqrt(var + x.dtype.type(layer.epsilon))
    normal = centred * scale

    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, ...]]:
        g = g.reshape(rows.shape)
        for_bias = g.sum(axis=1, keepdims=True)
        for_weight = (g * normal).sum(axis=1, keepdims=True)
        gradients = (for_weight[:, 0], for_bias[:, 0])
        if not need:
            return None, gradients
        inner = g - for_bias / count - normal * (for_weight / count)
        return (weight * scale * inner).reshape(x.shape), gradients

    return (normal * weight + bias).reshape(x.shape), backward
