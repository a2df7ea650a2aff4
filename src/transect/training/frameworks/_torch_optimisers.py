"""The update rules as torch has them, and LAMB, which it has not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from transect.training.frameworks._torch_lamb import lamb_class
from transect.training.frameworks._torch_modules import copy_array
from transect.training.optimisers import group_rule
from transect.training.workloads import Parameters

if TYPE_CHECKING:
    import torch

    from transect.training.frameworks import TrainingState

# Names of what torch keeps, in the order of the rule's states.
_KEPT = {
    "sgd": ("momentum_buffer",),
    "nesterov": ("momentum_buffer",),
    "adam": ("exp_avg", "exp_avg_sq"),
    "adamw": ("exp_avg", "exp_avg_sq"),
    "lamb": ("exp_avg", "exp_avg_sq"),
    "rmsprop": ("square_avg", "momentum_buffer"),
    "adagrad": ("sum",),
}
OPTIMISERS = tuple(_KEPT)


def make_optimiser(rule: Parameters, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
    """Return torch's own optimiser, whose defaults are those of the rules in `optimisers`.

    SGD has dampening 0; Adam divides by sqrt(v / (1 - beta2^t)) + epsilon. Raises KeyError for a
    rule that torch does not have.
    """
    import torch

    # A part of a model may have no weights; torch refuses an empty list.
    groups = list(_groups(rule, parameters)) or [{"params": [torch.empty(0)]}]
    common = {"lr": rule.learning_rate, "weight_decay": rule.weight_decay}
    betas = {"betas": (rule.beta1, rule.beta2), "eps": rule.epsilon}
    optim = torch.optim
    makers: dict[str, Any] = {
        "sgd": lambda: optim.SGD(groups, **common, momentum=rule.momentum),
        "nesterov": lambda: optim.SGD(groups, **common, momentum=rule.momentum, nesterov=rule.momentum > 0),
        "adam": lambda: optim.Adam(groups, **common, **betas),
        "adamw": lambda: optim.AdamW(groups, **common, **betas),
        "lamb": lambda: lamb_class()(groups, **common, **betas),
        "rmsprop": lambda: optim.RMSprop(groups, **common, alpha=rule.alpha, eps=rule.epsilon, momentum=rule.momentum),
        "adagrad": lambda: optim.Adagrad(groups, **common, eps=rule.epsilon),
    }
    made: torch.optim.Optimizer = makers[rule.optimiser]()
    return made


def _groups(rule: Parameters, parameters: list[torch.Tensor]) -> Iterator[dict[str, Any]]:
    """Yield the parameters with the weight decay that they have in common, in their order."""
    decays = [group_rule(rule, tuple(parameter.shape)).weight_decay for parameter in parameters]
    for decay in sorted(set(decays), reverse=True):
        members = [parameter for parameter, own in zip(parameters, decays, strict=True) if own == decay]
        yield {"params": members, "weight_decay": decay}


def clip_gradients(parameters: list[torch.Tensor], limit: float) -> None:
    """Scale all gradients to the limit where their norm is larger.

    Not `clip_grad_norm_`: that adds 1e-6 to the norm.
    """
    import torch

    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]))
    factor = torch.clamp(limit / norm, max=1.0)
    for gradient in gradients:
        gradient.mul_(factor)


def set_optimiser_state(
    rule: Parameters, optimiser: torch.optim.Optimizer, module: torch.nn.Module, state: TrainingState
) -> None:
    """Give an optimiser of `make_optimiser` the states of its rule. It holds the module's parameters."""
    import torch

    names = _KEPT[rule.optimiser]
    if "momentum_buffer" in names and not rule.momentum:
        names = names[:-1]
    optimiser.state.clear()
    if not names:
        return
    counts = rule.optimiser not in ("sgd", "nesterov")
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            kept = optimiser.state[parameter]
            # Without momentum a rule's last state is not in use.
            for kept_name, given in zip(names, state.states, strict=False):
                kept[kept_name] = torch.zeros_like(parameter)
                copy_array(kept[kept_name], given[name])
            if counts:
                kept["step"] = torch.tensor(float(state.updates))
