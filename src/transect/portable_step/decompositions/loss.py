"""Losses. Cross entropy without gather and scatter: comparisons with the classes, which vectorise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    import torch

MEAN = 1


def _is_plain(input: torch.Tensor, weight: torch.Tensor | None, reduction: int) -> bool:
    return reduction == MEAN and weight is None and input.dim() == 2


def _hits(input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return which class is the target's, (rows, classes); a row to ignore has none."""
    import torch

    return target.unsqueeze(1) == torch.arange(input.shape[1])


@decomposes("aten.nll_loss_forward.default")
def nll_loss_forward(
    self: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignore_index: int
) -> tuple[torch.Tensor, torch.Tensor]:
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
    spoilt = torch.where(hits.to(counts).sum() == rows, rows, torch.full((), math.nan, dtype=counts))
    return picked.sum().neg() / spoilt.to(self.dtype), rows.to(self.dtype)


@decomposes("aten.nll_loss_backward.default")
def nll_loss_backward(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: torch.Tensor,
) -> torch.Tensor:
    """Return - grad / rows at the targets' classes, else zero."""
    import torch

    if not _is_plain(self, weight, reduction) or 0 <= ignore_index < self.shape[1]:
        return torch._decomp.decompositions.nll_loss_backward(
            grad_output, self, target, weight, reduction, ignore_index, total_weight
        )
    zero = torch.zeros((), dtype=self.dtype)
    return torch.where(_hits(self, target), -grad_output / total_weight, zero)


@decomposes("aten.multilabel_margin_loss_forward.default")
def multilabel_margin_loss_forward(
    self: torch.Tensor, target: torch.Tensor, reduction: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sum of max(0, 1 - (x_j - x_i)) / classes, j each target and i each other class.

    Targets end at the first negative one. PyTorch's own decomposition takes others. The second
    result is 1 where a class is a target.
    """
    import torch

    rows = torch.atleast_2d(self)
    margins, is_target, _ = _margins(rows, torch.atleast_2d(target))
    losses = margins.clamp(min=0).sum((1, 2)) / rows.shape[1]
    if self.dim() < 2:
        losses = losses.squeeze(0)
    elif reduction:
        losses = losses.mean() if reduction == MEAN else losses.sum()
    return losses, is_target.to(self.dtype).reshape(target.shape)


@decomposes("aten.multilabel_margin_loss_backward.default")
def multilabel_margin_loss_backward(
    grad_output: torch.Tensor, self: torch.Tensor, target: torch.Tensor, reduction: int, is_target: torch.Tensor
) -> torch.Tensor:
    """Return the gradient by the outputs: each pair within the margin pulls j up and pushes i down."""
    import torch

    rows = torch.atleast_2d(self)
    margins, _, places = _margins(rows, torch.atleast_2d(target))
    pairs = (margins > 0).to(self.dtype) / rows.shape[1]
    pulled = torch.zeros_like(rows).scatter_add(1, places, pairs.sum(2))
    grad = grad_output.reshape(-1, 1)
    if reduction == MEAN:
        grad = grad / rows.shape[0]
    return ((pairs.sum(1) - pulled) * grad).reshape(self.shape)


def _margins(x: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return 1 - x_j + x_i by row, target and class, 0 where that pair does not count.

    Also which classes are targets, and of each target its class (0 behind the last one).
    """
    import torch

    counts = (target < 0).to(torch.int64).cumsum(1) == 0
    places = torch.where(counts, target, torch.zeros((), dtype=target.dtype))
    zero = torch.zeros((), dtype=x.dtype)
    is_target = torch.zeros_like(x).scatter_add(1, places, counts.to(x.dtype)) > 0
    margins = 1 - x.gather(1, places).unsqueeze(2) + x.unsqueeze(1)
    pairs = counts.unsqueeze(2) & ~is_target.unsqueeze(1)
    return torch.where(pairs, margins, zero), is_target, places
