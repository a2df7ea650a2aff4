"""Batch norm with the batch's own statistics, and its gradient; layer norm.

The exporter takes every batch norm for one of prediction: written out, it is one of training.
ONNX's layer norm gives mean and deviation in float32 whatever its input is, and ONNX Runtime's takes
4 ns an element on a CPU: written out it is faster, and shares parts with its gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor


@decomposes("aten._native_batch_norm_legit_functional.default")
def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the output, the mean and 1 / deviation of the batch, and the next buffers."""
    if not training:
        out = _normalise(x, weight, bias, running_mean, running_var, eps)
        none = x.new_zeros([0])
        return out, none, none, running_mean.clone(), running_var.clone()
    mean, variance = _statistics(x)
    out = _normalise(x, weight, bias, mean, variance, eps)
    count = x.numel() / x.shape[1]
    next_mean = momentum * mean + (1 - momentum) * running_mean
    next_var = (momentum * count / (count - 1)) * variance + (1 - momentum) * running_var
    return out, mean, (variance + eps).rsqrt(), next_mean, next_var


@decomposes("aten._native_batch_norm_legit.no_stats")
def batch_norm_without_buffers(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output, and the mean and 1 / deviation of the batch."""
    mean, variance = _statistics(x)
    return _normalise(x, weight, bias, mean, variance, eps), mean, (variance + eps).rsqrt()


@decomposes("aten.native_batch_norm_backward.default")
def batch_norm_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients to input, weight and bias (Ioffe and Szegedy, arXiv:1502.03167, section 3)."""
    axes = [0, *range(2, x.dim())]
    if train:
        assert save_mean is not None and save_invstd is not None
        mean, scale = save_mean, save_invstd
    else:
        assert running_mean is not None and running_var is not None
        mean, scale = running_mean, (running_var + eps).rsqrt()
    centred = x - _over(mean, x)
    total = grad.sum(axes)
    along = (grad * centred).sum(axes)
    to_weight = along * scale
    factor = scale if weight is None else scale * weight
    to_x = None
    if output_mask[0]:
        if train:
            share = factor * -(x.shape[1] / x.numel())
            apart = centred * _over(to_weight * scale * share, x)
            to_x = _affine(grad, factor, total * share) + apart
        else:
            to_x = grad * _over(factor, x)
    return (to_x, to_weight if output_mask[1] else None, total if output_mask[2] else None)


@decomposes("aten.native_layer_norm.default")
def layer_norm(
    x: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output, and the mean and 1 / deviation of each row."""
    axes = list(range(-len(normalized_shape), 0))
    mean = x.mean(axes, keepdim=True)
    centred = x - mean
    scale = ((centred * centred).mean(axes, keepdim=True) + eps).rsqrt()
    out = centred * scale
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias), mean, scale


@decomposes("aten.native_layer_norm_backward.default")
def layer_norm_backward(
    grad: Tensor,
    x: Tensor,
    normalized_shape: list[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients to input, weight and bias (Ba and others, arXiv:1607.06450)."""
    axes = list(range(-len(normalized_shape), 0))
    rows = list(range(x.dim() - len(normalized_shape)))
    normal = (x - mean) * rstd
    to_x = to_weight = to_bias = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * weight
        along = (scaled * normal).mean(axes, keepdim=True)
        to_x = (scaled - scaled.mean(axes, keepdim=True) - normal * along) * rstd
    if output_mask[1]:
        to_weight = (grad * normal).sum(rows) if rows else grad * normal
    if output_mask[2]:
        to_bias = grad.sum(rows) if rows else grad.clone()
    return to_x, to_weight, to_bias


def _statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    axes = [0, *range(2, x.dim())]
    mean = x.mean(axes)
    centred = x - _over(mean, x)
    return mean, (centred * centred).mean(axes)


def _normalise(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float
) -> Tensor:
    scale = (variance + eps).rsqrt()
    bias = scale.new_zeros([x.shape[1]]) if bias is None else bias
    return _affine(x - _over(mean, x), scale if weight is None else scale * weight, bias)


def _affine(x: Tensor, factor: Tensor, shift: Tensor) -> Tensor:
    """Return x times a factor plus a shift for each channel, in one pass over memory.

    It is a batch norm of mean 0 and variance 1: its own epsilon would be rounded to float32.
    """
    import torch

    mean = factor.new_zeros([x.shape[1]])
    return torch.ops.aten._native_batch_norm_legit_no_training.default(x, factor, shift, mean, mean + 1, 0.0, 0.0)[0]


def _over(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape([1, -1, *[1] * (x.dim() - 2)])
