"""Operators of PyTorch's own decompositions that the exporter has no translation for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@decomposes("aten.argmax.default")
def argmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Look for the largest bool among integers: ONNX has no ArgMax of bool."""
    import torch

    if self.dtype != torch.bool:
        return NotImplemented
    return self.to(torch.int32).argmax(dim, keepdim)


@decomposes("aten.max.dim")
def max_dim(self: Tensor, dim: int, keepdim: bool = False) -> Any:
    """Return the largest bool and its place, likewise: the gradient of cumprod finds its first zero so."""
    import torch

    if self.dtype != torch.bool:
        return NotImplemented
    value, place = self.to(torch.int32).max(dim, keepdim)
    return value.to(torch.bool), place


@decomposes("aten.relu.default")
def relu(self: Tensor) -> Any:
    """Return no number below 0; of integers, of which ONNX Runtime has no Relu, by a choice."""
    import torch

    if self.is_floating_point():
        return NotImplemented
    return torch.where(self > 0, self, torch.zeros((), dtype=self.dtype))


@decomposes("aten.scatter_reduce.two")
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Return the mean of what meets at a place as a sum over a count: ONNX has no scattered mean."""
    import torch

    if reduce != "mean":
        return NotImplemented
    start = self if include_self else torch.zeros_like(self)
    ones = torch.ones_like(src)
    before = torch.ones_like(self) if include_self else torch.zeros_like(self)
    count = before.scatter_add(dim, index, ones)
    mean = start.scatter_add(dim, index, src) / count.clamp(min=1)
    return mean if include_self else torch.where(count > 0, mean, self)


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
    """Put the gradient of one place of an axis between zeros: a pad, where PyTorch writes a choice.

    Of an axis that may vary it is the choice.
    """
    import torch

    axis = dim % len(sizes)
    if isinstance(sizes[axis], torch.SymInt):
        place = torch.arange(sizes[axis])
        here = (place if index >= 0 else place - sizes[axis]) == index
        here = here.reshape([-1, *[1] * (len(sizes) - 1 - axis)])
        return torch.where(here, grad.unsqueeze(axis), torch.zeros((), dtype=grad.dtype))
    length = int(sizes[axis])
    before = index % length
    pads = [0, 0] * (len(sizes) - 1 - axis) + [before, length - 1 - before]
    return torch.ops.aten.constant_pad_nd.default(grad.unsqueeze(axis), pads, 0)


@decomposes("aten.diagonal_backward.default")
def diagonal_backward(grad: Tensor, sizes: list[int], offset: int, dim1: int, dim2: int) -> Tensor:
    """Put the gradient of a diagonal into zeros, where PyTorch writes into a view of them."""
    import torch

    rank = len(sizes)
    first, second = dim1 % rank, dim2 % rank
    others = [size for axis, size in enumerate(sizes) if axis not in (first, second)]
    along = torch.arange(grad.shape[-1])
    places = (along + max(-offset, 0)) * sizes[second] + along + max(offset, 0)
    flat = grad.new_zeros([*others, sizes[first] * sizes[second]])
    made = flat.scatter_add(-1, places.expand(grad.shape), grad)
    return made.unflatten(-1, [sizes[first], sizes[second]]).movedim((-2, -1), (first, second))


@decomposes("aten.copy.default")
def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Return `src` in the shape and dtype of `self`, where ONNX's translation keeps its own: of `x[1:3, :2] = 1` a number."""
    return src.to(self.dtype).expand(self.shape).clone()
