"""Optimisers: how gradients change weights. One file each, which says the rule in numpy.

The rule in float64 is what every framework's own implementation is held to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import AfterValidator

from transect.domain.registry import Plugin, Registry
from transect.training.layers import Shape

if TYPE_CHECKING:
    from transect.training.workloads import Parameters

__all__ = [
    "OPTIMISERS",
    "OWN_OPTIMISER",
    "Optimiser",
    "OptimiserName",
    "arrays_kept",
    "group_rule",
    "unsupported_optimiser",
    "update_cuts",
]


class Optimiser(Plugin, ABC):
    """One update rule, over flat arrays of trained weights."""

    # Whether the rule looks at each weight's array as a whole. Else it treats each number alike, and any cut will do.
    by_array: bool = False

    @property
    @abstractmethod
    def states(self) -> int:
        """How many numbers it may keep for each weight from step to step."""

    @property
    @abstractmethod
    def takes(self) -> tuple[str, ...]:
        """Which of a workload's hyper-parameters it reads, besides the learning rate."""

    @abstractmethod
    def operations(self, rule: Parameters) -> int:
        """Count the least additions, multiplications, divisions and roots per weight and step.

        With this rule's hyper-parameters: what a momentum of 0 leaves out is not counted.
        """

    @abstractmethod
    def live_states(self, rule: Parameters) -> int:
        """Return how many of the states this rule reads and writes in a step."""

    @abstractmethod
    def update(
        self,
        rule: Parameters,
        weights: np.ndarray,
        gradient: np.ndarray,
        states: list[np.ndarray],
        learning_rate: float,
        step: int,
    ) -> None:
        """Change `weights` and `states` in place; `gradient` may be overwritten.

        All arrays are (n,) of one dtype: those of one weight where the rule is `by_array`, else of any of them. States
        begin as zeros; `step` counts from 1.
        """


# What a study's `optimiser: FILE.py:NAME` is kept as.
OWN_OPTIMISER = "function"
OPTIMISERS: Registry[Optimiser] = Registry("optimiser", "transect.training.optimisers", Optimiser)


def update_cuts(rule: Parameters, shapes: Iterable[Shape]) -> list[tuple[Parameters, slice]]:
    """Return for which cuts of all trained weights, one array behind the other, `update` is to be called.

    Each comes with its hyper-parameters: where `rule.decay` is `matrices`, arrays of fewer than two axes (biases and
    the weights of norms) have no decay. `shapes` are those of the arrays.
    """
    by_array = OPTIMISERS.get(rule.optimiser).by_array
    cuts: list[tuple[Parameters, slice]] = []
    start = 0
    for shape in shapes:
        end = start + prod(shape)
        own = group_rule(rule, shape)
        if cuts and not by_array and cuts[-1][0] == own:
            cuts[-1] = own, slice(cuts[-1][1].start, end)
        else:
            cuts.append((own, slice(start, end)))
        start = end
    return cuts


def arrays_kept(rule: Parameters) -> int:
    """Return how many arrays as large as the weights a step reads and writes beside weights and gradients."""
    return OPTIMISERS.get(rule.optimiser).live_states(rule) + (rule.ema is not None)


def group_rule(rule: Parameters, shape: Shape) -> Parameters:
    """Return the hyper-parameters for a weight of that shape."""
    if rule.decay == "all" or len(shape) > 1 or not rule.weight_decay:
        return rule
    return rule.model_copy(update={"weight_decay": 0.0})


def _known(name: str) -> str:
    found = OPTIMISERS.named(name)
    OPTIMISERS.get(found)
    return found


OptimiserName = Annotated[str, AfterValidator(_known)]


def unsupported_optimiser(framework: str, has: tuple[str, ...], optimiser: str) -> str | None:
    """Return the reason why a framework that `has` some optimisers cannot run this one, or None."""
    if optimiser in has:
        return None
    if optimiser == OWN_OPTIMISER:
        return f"{framework} cells cannot update by an optimiser of torch, which the function in the user's file makes"
    return f"{framework} cells update by {' or '.join(has)}, not by {optimiser}"
