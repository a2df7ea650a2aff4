"""The gradient of padding by repetition of the edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.portable_step.decompositions import decomposes

if TYPE_CHECKING:
    from torch import Tensor


@decomposes(
    "aten.replication_pad1d_backward.default",
    "aten.replication_pad2d_backward.default",
    "aten.replication_pad3d_backward.default",
)
def replication_pad_backward(grad: Tensor, x: Tensor, padding: list[int]) -> Tensor:
    """Add the gradient of the padding to that of the edges; `padding` is (left, right), last axis first."""
    for place in range(len(padding) // 2):
        axis = x.dim() - 1 - place
        grad = _fold(grad, axis, padding[2 * place], padding[2 * place + 1], int(x.shape[axis]))
    return grad


def _fold(grad: Tensor, axis: int, left: int, right: int, size: int) -> Tensor:
    """Undo the padding of one axis; a negative padding had cut elements off, whose gradient is 0."""
    import torch

    if left < 0 or right < 0:
        ends = [0, 0] * (grad.dim() - 1 - axis) + [max(-left, 0), max(-right, 0)]
        grad = torch.ops.aten.constant_pad_nd.default(grad, ends, 0)
        left, right = max(left, 0), max(right, 0)
    if size == 1:
        return grad.sum(axis, keepdim=True)
    first = grad.narrow(axis, 0, left + 1).sum(axis, keepdim=True)
    last = grad.narrow(axis, left + size - 1, right + 1).sum(axis, keepdim=True)
    return torch.cat([first, grad.narrow(axis, left + 1, size - 2), last], axis)
