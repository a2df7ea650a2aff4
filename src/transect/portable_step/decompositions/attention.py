"""Scaled dot product attention and its gradient, from products and a softmax.

PyTorch's kernel for the CPU (FlashAttention-2, arXiv:2307.08691) keeps the logarithm of the softmax's
denominator and makes the weights anew. Here they are written twice alike: ONNX Runtime sees the
same nodes and computes them once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor


@decomposes("aten._scaled_dot_product_flash_attention_for_cpu.default")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the attended values (batch, heads, queries, width), and a logsumexp that nothing reads."""
    groups = query.shape[1] // key.shape[1]
    weights = _weights(query, _repeated(key, groups), is_causal, attn_mask, scale)
    out = _product(weights, _repeated(value, groups))
    # The layout of PyTorch's kernel, which the views of what follows reckon with.
    out = out.transpose(1, 2).contiguous().transpose(1, 2)
    return out, query.new_zeros([query.shape[0], query.shape[2], query.shape[1]]).transpose(1, 2)


@decomposes("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients to queries, keys and values."""
    groups = query.shape[1] // key.shape[1]
    key, value = _repeated(key, groups), _repeated(value, groups)
    weights = _weights(query, key, is_causal, attn_mask, scale)
    to_weights = _product(grad, value, second=True)
    # The sum of weights times their gradients is that of values times theirs, which is shorter.
    to_scores = weights * (to_weights - (grad * out).sum(-1, keepdim=True))
    to_scores = to_scores * _scale(query, scale)
    return (
        _product(to_scores, key),
        _summed(_product(to_scores, query, first=True), groups),
        _summed(_product(weights, grad, first=True), groups),
    )


def _product(left: Tensor, right: Tensor, first: bool = False, second: bool = False) -> Tensor:
    """Multiply the matrices of each head, the first or the second ones transposed.

    A transpose right before a product of three axes is one that ONNX Runtime does not carry out.
    """
    heads = left.shape[1]
    left, right = left.flatten(0, 1), right.flatten(0, 1)
    left = left.transpose(1, 2) if first else left
    right = right.transpose(1, 2) if second else right
    return left.bmm(right).unflatten(0, (-1, heads))


def _repeated(heads: Tensor, groups: int) -> Tensor:
    """Give each head of keys or values to `groups` heads of queries."""
    if groups == 1:
        return heads
    return heads.unsqueeze(2).expand(-1, -1, groups, -1, -1).flatten(1, 2)


def _summed(heads: Tensor, groups: int) -> Tensor:
    return heads if groups == 1 else heads.unflatten(1, (-1, groups)).sum(2)


def _scale(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(int(query.shape[-1])) if scale is None else scale


def _weights(query: Tensor, key: Tensor, is_causal: bool, mask: Tensor | None, scale: float | None) -> Tensor:
    """Return the softmax over keys, (batch, heads, queries, keys); 0 where a mask lets none through."""
    import torch

    scores = _product(query * _scale(query, scale), key, second=True)
    if is_causal:
        rows, columns = int(query.shape[-2]), int(key.shape[-2])
        shape = torch.tensor(
            [[0.0 if j <= i else -math.inf for j in range(columns)] for i in range(rows)], dtype=query.dtype
        )
        scores = scores + shape
    if mask is None:
        return scores.softmax(-1)
    if mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, -math.inf).to(query.dtype)
    weights = (scores + mask).softmax(-1)
    return torch.where((mask == -math.inf).all(-1, keepdim=True), 0.0, weights)
