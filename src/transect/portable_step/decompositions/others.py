"""Operators of PyTorch's own decompositions that the exporter has no translation for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["empty_permuted", "prod", "weight_norm_backward"]


@decomposes("aten.empty_permuted.default")
def empty_permuted(
    size: list[int], physical_layout: list[int], *, dtype: torch.dtype | None = None, **more: Any
) -> Tensor:
    """Return zeros: the values are whatever is written over them, and a graph has no order in memory."""
    import torch

    return torch.zeros(size, dtype=dtype)


@decomposes("aten.prod.dim_int", "aten.prod.default")
def prod(x: Tensor, *axes: Any, **more: Any) -> Tensor:
    """Leave a product as it is."""
    return NotImplemented


@decomposes("aten._weight_norm_interface_backward.default")
def weight_norm_backward(
    grad: Tensor, direction: Tensor, length: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Return the gradients to direction and length (Salimans and Kingma, arXiv:1602.07868, equation 3)."""
    axes = [axis for axis in range(grad.dim()) if axis != dim % grad.dim()]
    to_length = (grad * direction).sum(axes, keepdim=True) / norms
    to_direction = (length / norms) * (grad - direction * (to_length / norms))
    return to_direction, to_length
