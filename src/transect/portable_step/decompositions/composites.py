"""Operators that PyTorch composes of others, in ways that hang on lengths: here for any length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.portable_step.decompositions import composes

if TYPE_CHECKING:
    from torch import Tensor


@composes("aten.cdist.default")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    """Return the distances of all pairs of rows by their differences; PyTorch takes products from 26 rows on.

    Shapes: `x1` (..., P, M), `x2` (..., R, M), result (..., P, R).
    """
    import torch

    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@composes("aten.take_along_dim.default")
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Gather along an axis; the other axes are broadcast, of which PyTorch compares the lengths."""
    if dim is None:
        return self.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % self.dim()
    wide = list(self.shape)
    for other, length in enumerate(indices.shape):
        if other != axis and isinstance(wide[other], int) and wide[other] == 1:
            wide[other] = length
    places = [indices.shape[axis] if other == axis else length for other, length in enumerate(wide)]
    return self.expand(wide).gather(axis, indices.expand(places))
