"""Operators of PyTorch's own decompositions that the exporter has no translation for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["empty_permuted", "select_backward", "weight_norm_backward"]


@decomposes("aten.empty_permuted.default")
def empty_permuted(
    size: list[int], physical_layout: list[int], *, dtype: torch.dtype | None = None, **more: Any
) -> Tensor:
    """Return zeros: the values are whatever is written over them, and a graph has no order in memory."""
    import torch

    return torch.zeros(size, dtype=dtype)


@decomposes("aten._weight_norm_interface_backward.default")
def weight_norm_backward(
    grad: Tensor, direction: Tensor, length: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Return the gradients to direction and length (Salimans and Kingma, arXiv:1602.07868, equation 3)."""
    axes = [axis for axis in range(grad.dim()) if axis != dim % grad.dim()]
    to_length = (grad * direction).sum(axes, keepdim=True) / norms
    to_direction = (length / norms) * (grad - direction * (to_length / norms))
    return to_direction, to_length


@decomposes("aten.select_backward.default")
def select_backward(grad: Tensor, sizes: list[int], dim: int, index: int) -> Tensor:
    """Put the gradient of one place of an axis between zeros: a pad, where PyTorch writes a choice."""
    import torch

    axis = dim % len(sizes)
    length = int(sizes[axis])
    before = index % length
    pads = [0, 0] * (len(sizes) - 1 - axis) + [before, length - 1 - before]
    return torch.ops.aten.constant_pad_nd.default(grad.unsqueeze(axis), pads, 0)
