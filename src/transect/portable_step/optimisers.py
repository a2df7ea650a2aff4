"""What a torch optimiser says: its rule, hyper-parameters by group, and the state it is in."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.domain.errors import BadInput

if TYPE_CHECKING:
    import torch

# Names of the hyper-parameters of each rule; those of DROPPED take no arithmetic when they are 0.
_ADAM = ("lr", "beta1", "beta2", "eps", "weight_decay")
RULES = {
    "sgd": ("lr", "momentum", "weight_decay"),
    "adam": _ADAM,
    "adamw": _ADAM,
    "lamb": _ADAM,
    "rmsprop": ("lr", "alpha", "eps", "momentum", "weight_decay"),
    "adagrad": ("lr", "lr_decay", "eps", "weight_decay"),
}
DROPPED = ("momentum", "weight_decay", "lr_decay")
# Our names of the tensors of an optimiser's state, and torch's.
_AVERAGES = {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
STATES = {
    "sgd": {"momentum": "momentum_buffer"},
    "adam": _AVERAGES,
    "adamw": _AVERAGES,
    "lamb": _AVERAGES,
    "rmsprop": {"square_avg": "square_avg", "momentum": "momentum_buffer"},
    "adagrad": {"sum": "sum"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A parameter group. `hyper`: a hyper-parameter of the rule to the name of its input."""

    parameters: tuple[str, ...]
    hyper: Mapping[str, str]
    nesterov: bool

    def states(self, rule: str) -> tuple[str, ...]:
        """Return the kinds of tensor that the rule keeps for each parameter of the group."""
        return tuple(kind for kind in STATES[rule] if kind != "momentum" or kind in self.hyper)


@dataclass(frozen=True, kw_only=True, slots=True)
class Optimiser:
    """`defaults`: inputs by name; `states`: arrays by (kind, parameter); `step`: updates done."""

    rule: str
    groups: tuple[Group, ...]
    defaults: Mapping[str, float]
    states: Mapping[tuple[str, str], np.ndarray]
    step: int


def read_optimiser(optimiser: torch.optim.Optimizer, parameters: Mapping[str, torch.Tensor]) -> Optimiser:
    """Read an optimiser over these trained parameters; BadInput for what cannot be honoured."""
    rule = _rule(optimiser)
    names = {id(tensor): name for name, tensor in parameters.items()}
    members = [tuple(names[id(p)] for p in g["params"] if id(p) in names) for g in optimiser.param_groups]
    if missing := set(parameters) - set(itertools.chain(*members)):
        raise BadInput(
            f"optimiser: it lacks the parameter {sorted(missing)[0]}; freeze it with "
            "requires_grad_(False) or give it to the optimiser"
        )
    _refuse_strangers(optimiser, names)
    values = [_hyper_values(group, rule) for group in optimiser.param_groups]
    groups, defaults = [], {}
    for number, (trained, numbers, group) in enumerate(zip(members, values, optimiser.param_groups, strict=True)):
        hyper = {}
        for name, value in numbers.items():
            if name in DROPPED and value == 0:
                continue
            differs = any(other[name] != value for other in values)
            hyper[name] = f"{name}.{number}" if differs and number else name
            defaults[hyper[name]] = value
        nesterov = bool(group.get("nesterov", False))
        groups.append(Group(parameters=trained, hyper=hyper, nesterov=nesterov))
    states, step = _read_states(optimiser, rule, groups, parameters)
    return Optimiser(rule=rule, groups=tuple(groups), defaults=defaults, states=states, step=step)


def _rule(optimiser: Any) -> str:
    """Name the rule; raises BadInput for another optimiser, and for options that change it."""
    import torch

    from transect.portable_step.lamb import Lamb

    optim = torch.optim
    rules = {
        optim.SGD: "sgd",
        optim.Adam: "adam",
        optim.AdamW: "adamw",
        optim.RMSprop: "rmsprop",
        optim.Adagrad: "adagrad",
        Lamb: "lamb",
    }
    if type(optimiser) not in rules:
        known = ", ".join(kind.__name__ for kind in rules if kind is not Lamb)
        raise BadInput(
            f"optimiser: {type(optimiser).__name__} given, expected one of torch.optim's {known}, or "
            "transect.portable_step.lamb.Lamb"
        )
    if optimiser._optimizer_step_pre_hooks or optimiser._optimizer_step_post_hooks:
        raise BadInput("optimiser: it has a hook on its steps, which no graph runs; expected none")
    for group in optimiser.param_groups:
        for option in ("dampening", "amsgrad", "maximize", "centered"):
            if group.get(option):
                raise BadInput(f"optimiser: {option}={group[option]!r} is not supported")
    if type(optimiser) is optim.Adam and any(group["decoupled_weight_decay"] for group in optimiser.param_groups):
        raise BadInput("optimiser: Adam with decoupled_weight_decay=True, expected torch.optim.AdamW, which is that")
    return rules[type(optimiser)]


def _refuse_strangers(optimiser: Any, names: Mapping[int, str]) -> None:
    for number, group in enumerate(optimiser.param_groups):
        for tensor in group["params"]:
            if tensor.requires_grad and id(tensor) not in names:
                raise BadInput(
                    f"optimiser: group {number} holds a tensor of shape {list(tensor.shape)} "
                    "that is no parameter of the module"
                )


def _hyper_values(group: Mapping[str, Any], rule: str) -> dict[str, float]:
    betas = group.get("betas", (0.0, 0.0))
    given = {**group, "beta1": betas[0], "beta2": betas[1]}
    return {name: float(given[name]) for name in RULES[rule]}


def _read_states(
    optimiser: Any, rule: str, groups: list[Group], parameters: Mapping[str, torch.Tensor]
) -> tuple[dict[tuple[str, str], np.ndarray], int]:
    """Return the arrays, zeros where the optimiser has not stepped, and how often it has."""
    states, steps = {}, {}
    for group in groups:
        for name in group.parameters:
            tensor = parameters[name]
            kept = optimiser.state.get(tensor, {})
            for kind in group.states(rule):
                there = kept.get(STATES[rule][kind])
                blank = np.zeros(tuple(tensor.shape), tensor.detach().numpy().dtype)
                states[kind, name] = blank if there is None else there.detach().cpu().numpy().copy()
            steps[name] = int(kept.get("step", 0))
    if len(set(steps.values())) > 1:
        fewest, most = min(steps, key=steps.__getitem__), max(steps, key=steps.__getitem__)
        raise BadInput(
            f"optimiser: {most} was updated {steps[most]} times, {fewest} {steps[fewest]} times; "
            "expected one number for all"
        )
    return states, next(iter(steps.values()), 0)
