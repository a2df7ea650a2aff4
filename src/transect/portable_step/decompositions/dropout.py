"""Dropout: masks from integers in place of torch's generator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes
from transect.portable_step.randomness import kept

if TYPE_CHECKING:
    import torch


@decomposes("aten.native_dropout.default")
def native_dropout(input: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return input * mask / (1 - p) and the mask."""
    import torch

    if not train or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    mask = kept(input, p)
    return input * _factor(mask, 1 / (1 - p) if p < 1 else 0.0, input.dtype), mask


@decomposes("aten.native_dropout_backward.default")
def native_dropout_backward(grad_output: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """Return grad * mask * scale, with the factors of the forward pass."""
    return grad_output * _factor(mask, scale, grad_output.dtype)


@decomposes("aten.bernoulli.p")
def bernoulli(input: torch.Tensor, p: float = 0.5, generator: object = None) -> torch.Tensor:
    """Return ones with probability p, else zeros: what feature and alpha dropout draw."""
    return kept(input, 1 - p).to(input.dtype)


def _factor(mask: torch.Tensor, scale: float, dtype: torch.dtype) -> torch.Tensor:
    import torch

    return torch.where(mask, torch.full((), scale, dtype=dtype), torch.zeros((), dtype=dtype))
