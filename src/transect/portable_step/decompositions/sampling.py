"""Images read at places that a network computes: grids, and their interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.portable_step.decompositions import composes

if TYPE_CHECKING:
    from torch import Tensor


@composes("aten.affine_grid_generator.default")
def affine_grid(theta: Tensor, size: list[int], align_corners: bool) -> Tensor:
    """Return the grid (N, H, W, 2), or (N, D, H, W, 3), of an affine map of each sample.

    `theta` (N, axes, axes + 1) maps places from -1 to 1, the last axis first, and a one.
    """
    import torch

    axes = [int(length) for length in size[2:]]
    places = []
    for number, length in enumerate(axes):
        line = torch.tensor(_places(length, align_corners), dtype=theta.dtype)
        places.append(line.reshape([-1 if axis == number else 1 for axis in range(len(axes))]).expand(axes))
    base = torch.stack([*reversed(places), torch.ones(axes, dtype=theta.dtype)], -1)
    flat = base.flatten(0, -2).expand(theta.shape[0], -1, -1)
    return flat.bmm(theta.transpose(1, 2)).unflatten(1, axes)


def _places(length: int, align_corners: bool) -> list[float]:
    """Return the centres of a row's pixels, or its corners and what lies evenly between, from -1 to 1."""
    if align_corners:
        return [2 * i / (length - 1) - 1 for i in range(length)] if length > 1 else [0.0]
    return [(2 * i + 1) / length - 1 for i in range(length)]


@composes("aten.grid_sampler_2d.default")
def grid_sample(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """Return images read at a grid, by operators of which autograd takes the gradient."""
    import torch

    return torch._decomp.decompositions.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)
