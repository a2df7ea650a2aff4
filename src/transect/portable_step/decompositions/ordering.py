"""What is chosen by order: medians, the k-th smallest, and the largest or smallest so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor


@decomposes("aten.kthvalue.default")
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the k-th smallest of an axis, 1 the smallest, and its place; of equal ones any."""
    if self.dim() == 0:
        return self.clone(), self.new_zeros([], dtype=_int64())
    values, places = self.sort(dim)
    axis = dim % self.dim()
    values, places = values.select(axis, k - 1), places.select(axis, k - 1)
    return (values.unsqueeze(axis), places.unsqueeze(axis)) if keepdim else (values, places)


@decomposes("aten.median.dim")
def median_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the lower median of an axis and its place; NaN where one is there."""
    import torch

    length = self.shape[dim] if self.dim() else 1
    values, places = kthvalue(self, (length + 1) // 2, dim, keepdim)
    if self.is_floating_point():
        # Sorted, what is no number comes last.
        values = torch.where(self.isnan().any(dim, keepdim=keepdim), float("nan"), values)
    return values, places


@decomposes("aten.median.default")
def median(self: Tensor) -> Tensor:
    """Return the lower median of all elements."""
    return median_dim(self.reshape(-1), 0)[0]


@decomposes("aten.cummax.default")
def cummax(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the largest element up to each place, and where it stands: the last of equal ones."""
    return _so_far(self, dim, largest=True)


@decomposes("aten.cummin.default")
def cummin(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the smallest element up to each place, and where it stands: the last of equal ones."""
    return _so_far(self, dim, largest=False)


def _so_far(x: Tensor, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Compare each place with all before it, as a triangle of the axis with itself."""
    import torch

    if x.dim() == 0:
        return x.clone(), x.new_zeros([], dtype=_int64())
    axis, length = dim % x.dim(), x.shape[dim]
    # Backwards, so that the first of equal ones is the last.
    places = torch.arange(length).flip(0)
    seen = places[None] <= torch.arange(length)[:, None]
    seen = seen.reshape([length, length, *[1] * (x.dim() - 1 - axis)])
    bounds = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    lowest = float("-inf") if x.is_floating_point() else bounds.min
    highest = float("inf") if x.is_floating_point() else bounds.max
    wide = torch.where(seen, x.flip(axis).unsqueeze(axis), lowest if largest else highest)
    values = wide.amax(axis + 1) if largest else wide.amin(axis + 1)
    # What is not seen may be as large; no number is equal to itself alone.
    found = seen & ((wide == values.unsqueeze(axis + 1)) | wide.isnan())
    return values, length - 1 - found.to(_int64()).argmax(axis + 1)


def _int64() -> object:
    import torch

    return torch.int64
