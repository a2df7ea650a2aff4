"""LAMB for PyTorch, which has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@cache
def lamb_class() -> Any:
    """Return the one class: its parent is torch's."""
    import torch

    class Lamb(torch.optim.Optimizer):
        """u = m / c1 / (sqrt(v / c2) + eps) + weight_decay w; w -= lr |w| / |u| u, for each tensor by itself.

        m and v are Adam's averages, c = 1 - beta^updates; where a norm is 0 the ratio is 1 (You and others, "Large batch
        optimization for deep learning", arXiv:1904.00962, algorithm 2, with phi(z) = z).
        """

        def __init__(
            self,
            params: Iterable[Any],
            lr: float = 1e-3,
            betas: tuple[float, float] = (0.9, 0.999),
            eps: float = 1e-6,
            weight_decay: float = 0.0,
        ) -> None:
            super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

        @torch.no_grad()  # type: ignore[untyped-decorator]
        def step(self, closure: Callable[[], Any] | None = None) -> Any:
            """Update all parameters that have a gradient."""
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for weight in group["params"]:
                    if weight.grad is not None:
                        self._update(weight, weight.grad, group)
            return loss

        def _update(self, weight: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
            kept = self.state[weight]
            if not kept:
                kept.update(
                    step=torch.tensor(0.0), exp_avg=torch.zeros_like(weight), exp_avg_sq=torch.zeros_like(weight)
                )
            kept["step"] += 1
            updates = float(kept["step"])
            first, second = group["betas"]
            kept["exp_avg"].lerp_(gradient, 1 - first)
            kept["exp_avg_sq"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
            root = (kept["exp_avg_sq"] / (1 - second**updates)).sqrt()
            along = kept["exp_avg"] / (1 - first**updates) / (root + group["eps"]) + group["weight_decay"] * weight
            size, length = weight.norm(), along.norm()
            ratio = torch.where((size > 0) & (length > 0), size / length, torch.ones_like(size))
            weight.sub_(group["lr"] * ratio * along)

    return Lamb
