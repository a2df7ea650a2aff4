"""Products and windows that the exporter has no translation for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor


@decomposes("aten._trilinear.default")
def trilinear(
    first: Tensor,
    second: Tensor,
    third: Tensor,
    expand_first: list[int],
    expand_second: list[int],
    expand_third: list[int],
    sum_axes: list[int],
    unroll_dim: int = 1,
) -> Tensor:
    """Return the sum over `sum_axes` of a product of three; axes of length 1 are put in first."""
    product = None
    for factor, axes in ((first, expand_first), (second, expand_second), (third, expand_third)):
        for axis in sorted(axes):
            factor = factor.unsqueeze(axis)
        product = factor if product is None else product * factor
    assert product is not None
    return product.sum(sum_axes) if sum_axes else product


@decomposes("aten.unfold_backward.default")
def unfold_backward(grad: Tensor, sizes: list[int], dim: int, size: int, step: int) -> Tensor:
    """Add the gradients of windows of `size`, `step` apart along `dim`, that overlap."""
    import torch

    axis = dim % len(sizes)
    count = int(grad.shape[axis])
    flat = grad.movedim(-1, axis + 1).flatten(axis, axis + 1)
    places = torch.tensor([step * i + j for i in range(count) for j in range(size)])
    places = places.reshape([-1, *[1] * (len(sizes) - 1 - axis)]).expand(flat.shape)
    return grad.new_zeros(sizes).scatter_add(axis, places, flat)


@decomposes("aten.cumprod.default")
def cumprod(x: Tensor, dim: int, *, dtype: object = None) -> Tensor:
    """Return products of the elements up to each place."""
    import torch

    axis, size = dim % x.dim(), int(x.shape[dim])
    behind = [1] * (x.dim() - 1 - axis)
    seen = torch.tensor([[j <= i for j in range(size)] for i in range(size)])
    seen = seen.reshape([size, size, *behind])
    return torch.where(seen, x.unsqueeze(axis), 1.0).prod(axis + 1)
