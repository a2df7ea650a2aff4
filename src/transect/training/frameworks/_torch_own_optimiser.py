"""Optimisers of torch that functions of users make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transect.domain.errors import FAULTS, BadInput
from transect.training.own_files import member_of

if TYPE_CHECKING:
    import torch


def make(function: tuple[Path, str], module: torch.nn.Module, rate: float) -> torch.optim.Optimizer:
    """Return what the function gives for module and rate. Raises BadInput where it raises, or gives something else."""
    import torch

    file, name = function
    maker = member_of(file, name)
    try:
        made = maker(module, rate)
    except FAULTS as error:
        raise BadInput(f"{file}:{name}: called with the module and {rate}: {type(error).__name__}: {error}") from error
    if not isinstance(made, torch.optim.Optimizer):
        raise BadInput(f"{file}:{name}: gives a {type(made).__name__}: expected a torch.optim.Optimizer")
    if not all("lr" in group for group in made.param_groups):
        raise BadInput(f"{file}:{name}: a {type(made).__name__} has groups without an `lr`: expected one in each")
    held = {id(parameter) for group in made.param_groups for parameter in group["params"]}
    if held.isdisjoint(map(id, module.parameters())):
        raise BadInput(
            f"{file}:{name}: a {type(made).__name__} holds no parameter of the module, which would not train"
        )
    return made


def rate_shares(optimiser: torch.optim.Optimizer, rate: float) -> list[float]:
    """Return what each group's rate is of the training's, which a schedule changes."""
    return [float(group["lr"]) / rate for group in optimiser.param_groups]


def set_rates(optimiser: torch.optim.Optimizer, shares: list[float], rate: float) -> None:
    """Give each group its share of a step's rate."""
    for group, share in zip(optimiser.param_groups, shares, strict=True):
        group["lr"] = share * rate


def try_optimiser(function: tuple[Path, str], module: torch.nn.Module, rate: float) -> None:
    """Take a step with the gradients that the module has. Raises BadInput where that fails."""
    made = make(function, module, rate)
    try:
        made.step()
    except FAULTS as error:
        raise BadInput(
            f"{function[0]}:{function[1]}: a {type(made).__name__} fails in its first step: {type(error).__name__}: "
            f"{error}: expected an optimiser whose `step()` needs no more than gradients"
        ) from error
