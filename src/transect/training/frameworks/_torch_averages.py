"""Averages of weights in torch, by the functions of `torch.optim.swa_utils`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class Averages:
    """Of the parameters, which may be shards: each rank averages its own."""

    def __init__(self, parameters: list[torch.Tensor], decay: float | None) -> None:
        self._parameters, self._decay = parameters, decay
        self._averages: list[Any] = []

    def _held(self) -> list[Any]:
        """Return the parameters' numbers on this rank."""
        import torch
        from torch.distributed.tensor import DTensor

        with torch.no_grad():
            return [p.to_local() if isinstance(p, DTensor) else p.detach() for p in self._parameters]

    def move(self) -> None:
        """Move the averages towards the weights; the first call makes them the weights."""
        from torch.optim.swa_utils import get_ema_multi_avg_fn

        assert self._decay is not None
        if not self._averages:
            self._averages = [tensor.clone() for tensor in self._held()]
        else:
            get_ema_multi_avg_fn(self._decay)(self._averages, self._held(), None)

    def exchange(self) -> None:
        """Put the averages in place of the weights, and these in theirs."""
        for tensor, average in zip(self._held(), self._averages, strict=True):
            kept = tensor.clone()
            tensor.copy_(average)
            average.copy_(kept)
