"""Sums over ranks as steps of autograd: what passes forward need not be what passes back.

The two are f and g of M. Shoeybi et al., "Megatron-LM: training multi-billion parameter language models
using model parallelism", arXiv:1909.08053, section 3.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from transect.training.strategies._torch_replicas import RankGroup


def summed(x: Any, group: RankGroup) -> Any:
    """Return the sum over the group, for ranks that all compute the same with it.

    Their gradients are equal then, and each is already that of its own term: they pass as they are.
    """
    return _functions()[0].apply(x, group)


def summed_back(x: Any, group: RankGroup) -> Any:
    """Return x, which all ranks have, for ranks that each compute something else with it.

    Its gradient is the sum of theirs.
    """
    return _functions()[1].apply(x, group)


def summed_both_ways(x: Any, group: RankGroup) -> Any:
    """Return the sum over the group, for ranks that each compute something else with it."""
    return summed(summed_back(x, group), group)


@cache
def _functions() -> tuple[Any, Any]:
    import torch

    def total(x: Any, group: RankGroup) -> Any:
        return group.sum(x.clone(memory_format=torch.contiguous_format))

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, group: RankGroup) -> Any:
            return total(x, group)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    class SumBack(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, group: RankGroup) -> Any:
            ctx.group = group
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return total(g, ctx.group), None

    return Sum, SumBack
