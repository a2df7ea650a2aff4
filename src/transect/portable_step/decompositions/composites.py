"""Operators that PyTorch composes of others, in ways that hang on lengths: here for any length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.domain.errors import BadInput
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


@composes("aten.embedding_bag.padding_idx")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return sum, mean or maximum (`mode` 0, 1, 2) of the rows of each bag; the other results nobody reads.

    Shapes: `weight` (rows, width), `indices` (n,), `offsets` (bags,), where each bag begins.
    """
    import torch

    if padding_idx is not None or sparse:
        raise BadInput("EmbeddingBag: padding_idx or sparse=True given, expected none; weights of 0 leave rows out")
    begins = offsets[:-1] if include_last_offset else offsets
    bag = (torch.arange(indices.shape[0])[:, None] >= begins[None]).sum(1) - 1
    rows = torch.nn.functional.embedding(indices, weight, None, None, 2.0, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    blank = torch.zeros([begins.shape[0], weight.shape[1]], dtype=rows.dtype)
    place = bag[:, None].expand(rows.shape)
    if mode == 2:
        made = blank.scatter_reduce(0, place, rows, "amax", include_self=False)
    else:
        made = blank.scatter_add(0, place, rows)
    if mode == 1:
        count = torch.zeros([begins.shape[0]], dtype=rows.dtype).scatter_add(0, bag, torch.ones_like(rows[:, 0]))
        made = made / count.clamp(min=1)[:, None]
    return made, bag, bag, bag


@composes("aten.cov.default")
def cov(self: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Return the covariance of the rows, over the columns; PyTorch warns by a value where there are too few.

    Shapes: `self` (variables, observations), weights (observations,).
    """
    import torch

    rows = self if self.dim() == 2 else self.reshape(1, -1)
    weights = torch.ones_like(rows[0])
    for given in (fweights, aweights):
        weights = weights if given is None else weights * given
    total = weights.sum()
    # Weights of one kind are counts, of the other how sure an observation is.
    less = total if aweights is None else (weights * aweights).sum()
    centred = rows - (rows * weights).sum(1, keepdim=True) / total
    made = (centred * weights) @ centred.t() / (total - correction * less / total).clamp(min=0)
    return made if made.shape[0] > 1 else made.reshape([])


@composes("aten.corrcoef.default")
def corrcoef(self: Tensor) -> Tensor:
    """Return the correlations of the rows, over the columns."""
    made = cov(self)
    if made.dim() == 0:
        return made / made
    deviation = made.diagonal().sqrt()
    return (made / deviation[:, None] / deviation[None]).clamp(-1, 1)


@composes("aten.adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(self: Tensor, output_size: list[int]) -> Tensor:
    """Return means over windows; of one window without the order in memory that PyTorch gives it."""
    import torch

    if list(output_size) == [1, 1]:
        return self.mean((-2, -1), keepdim=True)
    return torch.ops.aten._adaptive_avg_pool2d.default(self, output_size)


@composes("transformers.grouped_mm_fallback.default")
def grouped_product(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """Multiply each row by the matrix of its expert, as one product over all experts with zeros between.

    Shapes: `input` (rows, in) in the order of experts, `weight` (experts, in, out), `offs` (experts,), where
    each expert's rows end.
    """
    import torch

    expert = (torch.arange(input.shape[0])[:, None] >= offs[None]).sum(1)
    own = expert[:, None] == torch.arange(weight.shape[0])
    spread = torch.where(own.unsqueeze(2), input.unsqueeze(1), torch.zeros((), dtype=input.dtype))
    return spread.flatten(1) @ weight.flatten(0, 1)
