"""Cross entropy without gather and scatter: comparisons with the classes, which vectorise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    import torch

__all__: list[str] = []

MEAN = 1


def _is_plain(input: torch.Tensor, weight: torch.Tensor | None, reduction: int) -> bool:
    """Tell the mean over rows, without class weights, from the other forms."""
    return reduction == MEAN and weight is None and input.dim() == 2


def _hits(input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return which class is the target's, (rows, classes); a row to ignore has none."""
    import torch

    return target.unsqueeze(1) == torch.arange(input.shape[1])


@decomposes("aten.nll_loss_forward.default")
def nll_loss_forward(
    self: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int,
    ignore_index: int,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return minus the mean of the targets' log probabilities, and how many rows count.

    NaN where a target is no class.
    """
    import torch

    if not _is_plain(self, weight, reduction) or 0 <= ignore_index < self.shape[1]:
        return torch._decomp.decompositions.nll_loss_forward(  # type: ignore[no-any-return]
            self, target, weight, reduction, ignore_index
        )
    hits = _hits(self, target)
    # Of a short float, not each number of rows is one.
    counts = torch.promote_types(self.dtype, torch.float32)
    rows = (target != ignore_index).to(counts).sum()
    picked = torch.where(hits, self, torch.zeros((), dtype=self.dtype))
    # PyTorch raises an error for a class that is not there; a graph can only spoil the loss.
    spoilt = torch.where(
        hits.to(counts).sum() == rows, rows, torch.full((), math.nan, dtype=counts)
    )
    return picked.sum().neg() / spoilt.to(self.dtype), rows.to(self.dtype)


@decomposes("aten.nll_loss_backward.default")
def nll_loss_backward(
    grad_output: torch.Tensor, self: torch.Tensor, target: torch.Tensor,
    weight: torch.Tensor | None, reduction: int, ignore_index: int, total_weight: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Return - grad / rows at the targets' classes, else zero."""
    import torch

    if not _is_plain(self, weight, reduction) or 0 <= ignore_index < self.shape[1]:
        return torch._decomp.decompositions.nll_loss_backward(  # type: ignore[no-any-return]
            grad_output, self, target, weight, reduction, ignore_index, total_weight
        )
    zero = torch.zeros((), dtype=self.dtype)
    return torch.where(_hits(self, target), -grad_output / total_weight, zero)
