"""Optimisers: how gradients change weights. One file each, which says the rule in numpy.

The rule in float64 is what every framework's own implementation is held to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import AfterValidator

from transect.domain.registry import Plugin, Registry

if TYPE_CHECKING:
    from transect.training.workloads import Parameters

__all__ = ["OPTIMISERS", "Optimiser", "OptimiserName", "unsupported_optimiser"]


class Optimiser(Plugin, ABC):
    """One update rule, over flat arrays of all trained weights."""

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

        All arrays are (n,) of one dtype; states begin as zeros; `step` counts from 1.
        """


OPTIMISERS: Registry[Optimiser] = Registry("optimiser", "transect.training.optimisers", Optimiser)


def _known(name: str) -> str:
    found = OPTIMISERS.named(name)
    OPTIMISERS.get(found)
    return found


OptimiserName = Annotated[str, AfterValidator(_known)]


def unsupported_optimiser(framework: str, has: tuple[str, ...], optimiser: str) -> str | None:
    """Return the reason why a framework that `has` some optimisers cannot run this one, or None."""
    if optimiser in has:
        return None
    return f"{framework} cells update by {' or '.join(has)}, not by {optimiser}"
