"""The losses of `losses` in torch's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from transect.training.module_model import ModuleModel
from transect.training.own_files import member_of
from transect.training.workloads import Parameters

if TYPE_CHECKING:
    import torch

LOSSES = ("cross-entropy", "mse", "huber", "binary-cross-entropy", "next-token")


def loss_function(rule: Parameters, model: object) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the mean loss of outputs and targets as a function of tensors. Raises KeyError for an unknown loss."""
    if isinstance(model, ModuleModel) and model.own_loss is not None:
        own: Callable[[Any, Any], Any] = member_of(*model.own_loss)
        return own
    import torch
    from torch.nn import functional

    def numbers(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        # Of class numbers vectors of one 1 and zeros; what `one_hot` does depends on values, and cannot be exported.
        given = y if y.shape == outputs.shape else torch.arange(outputs.shape[1], device=y.device) == y[:, None]
        return given.to(outputs.dtype)

    def mse(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        # Of class numbers the published loss: half the distance, and a sum over classes.
        square = (outputs - numbers(outputs, y)).square()
        return square.mean() if y.shape == outputs.shape else 0.5 * square.sum() / len(y)

    def next_token(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows = outputs.reshape(-1, outputs.shape[-1])
        return functional.cross_entropy(rows, y.reshape(-1), label_smoothing=rule.label_smoothing)

    losses: dict[str, Callable[[Any, Any], Any]] = {
        "cross-entropy": lambda o, y: functional.cross_entropy(o, y, label_smoothing=rule.label_smoothing),
        "mse": mse,
        "huber": lambda o, y: functional.huber_loss(o, numbers(o, y), delta=rule.delta),
        "binary-cross-entropy": lambda o, y: functional.binary_cross_entropy_with_logits(o, numbers(o, y)),
        "next-token": next_token,
    }
    return losses[rule.loss]
