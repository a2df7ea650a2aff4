"""Forward and backward passes of every layer, in numpy. Shapes: batch first, NCHW."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from transect.training.layers import Conv2d, Flatten, Layer, Linear, MaxPool2d, ReLU, Sigmoid

__all__ = ["Backward", "forward", "loss_and_gradient"]

Array = np.ndarray
# Takes the gradient of the output; returns that of the input (None for the first layer, where
# nobody needs it) and those of weight and bias, or None for a layer without parameters.
Backward = Callable[[Array, bool], tuple[Array | None, tuple[Array, Array] | None]]


def _linear(x: Array, weight: Array, bias: Array) -> tuple[Array, Backward]:
    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, Array]]:
        return (g @ weight if need else None), (g.T @ x, g.sum(axis=0))

    return x @ weight.T + bias, backward


def _convolution(x: Array, weight: Array, bias: Array, pad: int) -> tuple[Array, Backward]:
    """Convolution as one matrix product over unfolded windows (im2col)."""
    out_channels, _, kernel, _ = weight.shape
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) if pad else x
    n, channels, height, width = padded.shape
    out_h, out_w = height - kernel + 1, width - kernel + 1
    windows = sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * out_h * out_w, -1)
    flat = weight.reshape(out_channels, -1)
    y = (columns @ flat.T + bias).reshape(n, out_h, out_w, out_channels).transpose(0, 3, 1, 2)

    def backward(g: Array, need: bool) -> tuple[Array | None, tuple[Array, Array]]:
        rows = g.transpose(0, 2, 3, 1).reshape(-1, out_channels)
        gradients = (rows.T @ columns).reshape(weight.shape), rows.sum(axis=0)
        if not need:
            return None, gradients
        unfolded = (rows @ flat).reshape(n, out_h, out_w, channels, kernel, kernel)
        spread = np.zeros_like(padded)
        for i in range(kernel):
            for j in range(kernel):
                spread[:, :, i : i + out_h, j : j + out_w] += unfolded[..., i, j].transpose(
                    0, 3, 1, 2
                )
        inner = spread[:, :, pad : height - pad, pad : width - pad] if pad else spread
        return inner, gradients

    return y, backward


def _pool(x: Array, size: int) -> tuple[Array, Backward]:
    """Non-overlapping maximum; a tie sends its gradient to the first maximum, as torch does."""
    n, channels, height, width = x.shape
    tiles = x.reshape(n, channels, height // size, size, width // size, size)
    flat = tiles.transpose(0, 1, 2, 4, 3, 5).reshape(
        n, channels, height // size, width // size, size * size
    )
    where = flat.argmax(axis=-1)[..., None]

    def backward(g: Array, need: bool) -> tuple[Array, None]:
        spread = np.zeros_like(flat)
        np.put_along_axis(spread, where, g[..., None], axis=-1)
        back = spread.reshape(n, channels, height // size, width // size, size, size)
        return back.transpose(0, 1, 2, 4, 3, 5).reshape(x.shape), None

    return np.take_along_axis(flat, where, axis=-1)[..., 0], backward


def forward(
    layer: Layer, x: Array, weight: Array | None, bias: Array | None
) -> tuple[Array, Backward]:
    """Run one layer; the returned function runs it backwards."""
    match layer:
        case Linear():
            assert weight is not None and bias is not None
            return _linear(x, weight, bias)
        case Conv2d(padding=padding):
            assert weight is not None and bias is not None
            return _convolution(x, weight, bias, padding)
        case MaxPool2d(size):
            return _pool(x, size)
        case ReLU():
            return np.maximum(x, 0), lambda g, need: (g * (x > 0), None)
        case Sigmoid():
            # exp of a negative number only: no overflow for either sign.
            z = np.exp(-np.abs(x))
            y = np.where(x >= 0, 1 / (1 + z), z / (1 + z)).astype(x.dtype, copy=False)
            return y, lambda g, need: (g * y * (1 - y), None)
        case Flatten():
            return x.reshape(len(x), -1), lambda g, need: (g.reshape(x.shape), None)


def loss_and_gradient(kind: str, outputs: Array, y: Array) -> tuple[float, Array]:
    """Return the mean loss over the batch and its gradient with respect to the outputs.

    `mse`: half the squared distance to the one-hot target, summed over classes (L2 loss).
    `cross-entropy`: of the softmax of the outputs, with the maximum subtracted first.
    """
    n = len(y)
    rows = np.arange(n)
    if kind == "mse":
        difference = outputs.copy()
        difference[rows, y] -= 1
        return float(0.5 * np.square(difference).sum() / n), difference / n
    shifted = outputs - outputs.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1, keepdims=True)
    loss = float((np.log(sums[:, 0]) - shifted[rows, y]).sum() / n)
    gradient = exponentials / sums
    gradient[rows, y] -= 1
    return loss, gradient / n
