"""Batch norms whose running statistics are means over all batches, with the count of batches in the graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@contextlib.contextmanager
def counting_batch_norms() -> Iterator[None]:
    """Let batch norms of `momentum=None` count in a tensor: PyTorch's make a Python number of the count."""
    from torch.nn.modules.batchnorm import _BatchNorm

    plain = _BatchNorm.forward

    def forward(self: Any, input: Tensor) -> Any:
        counts = self.training and self.track_running_stats and self.momentum is None
        return _normalised(self, input) if counts else plain(self, input)

    _BatchNorm.forward = forward
    try:
        yield
    finally:
        _BatchNorm.forward = plain


def _normalised(norm: Any, input: Tensor) -> Tensor:
    """Return the output, and move the running statistics to those of the batch by 1 / count."""
    import torch

    norm._check_input_dim(input)
    norm.num_batches_tracked.add_(1)
    running = (norm.running_mean, norm.running_var)
    batch = [torch.zeros_like(buffer) for buffer in running]
    out = torch.nn.functional.batch_norm(input, *batch, norm.weight, norm.bias, True, 1.0, norm.eps)
    for buffer, new in zip(running, batch, strict=True):
        share = norm.num_batches_tracked.to(buffer.dtype).reciprocal()
        buffer.mul_(1 - share).add_(new * share)
    return out
