"""Strategies: how ranks work together. One file each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

import numpy as np

from transect.domain.registry import Registry
from transect.stages.train.cell import TrainCell
from transect.training.frameworks import Trainer
from transect.training.layout import Layout

__all__ = ["STRATEGIES", "Operation", "Parts", "Place", "Strategy", "refuse_sum"]

Operation = Literal["mean", "sum"]


@dataclass(slots=True)
class Place:
    """Where this rank stands: `rank` of `world_size`, `local_rank` on its node."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0


class Parts(NamedTuple):
    """What one step was made of, in seconds on this rank.

    `compute`: forward, backward and update. `communication`: the time in which this rank did
    nothing but wait for messages; the two add up to the step, apart from its input.
    `under_way`: how long messages were under way, hidden behind computing or not. NaN stands for
    what a library does not tell: `under_way` alone, or all three.
    """

    loss: float
    compute: float
    communication: float
    under_way: float


class Strategy(Protocol):
    """Keeps the ranks' models equal. A strategy object lives as long as its rank.

    Subclasses give `supports`, `join`, `barrier`, and `reduce` or `step`.
    """

    # How ranks meet: a name among `transect.launch.rendezvous.RENDEZVOUS`.
    rendezvous: str = "none"
    # Environments other than the framework's own, by framework.
    environments: Mapping[str, str] = MappingProxyType({})
    # Whether the gradients of ranks become their mean or their sum; set before `join`.
    operation: Operation = "mean"
    # Which framework's trainer it will get; set before `join`.
    framework: str = ""
    # Whether the model is spread over ranks: `predict` and `weights` are then called on all.
    sharded: bool = False

    def supports(self, cell: TrainCell) -> str | None:
        """Return None, or the reason why the cell cannot run."""
        ...

    def layout(self, cell: TrainCell) -> Layout:
        """Return how many ranks share the data, and how many a model: all share the data.

        Batches, learning rates, costs and the reference follow it. The loss that a rank gives is
        that of its replica's share.
        """
        return Layout(cell.ranks)

    def join(self) -> Place:
        """Meet the other ranks; called once, before the model is built."""
        ...

    def start(self, trainer: Trainer) -> None:
        """Give every rank the weights of rank 0; called once, before the first step."""

    def reduce(self, trainer: Trainer) -> None:
        """Turn local gradients into their mean (or sum), between backward and update."""

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """Do one step: forward and backward, `reduce`, update."""
        clock = time.perf_counter
        begin = clock()
        loss = trainer.forward_backward(x, y)
        computed = clock()
        self.reduce(trainer)
        reduced = clock()
        trainer.update(learning_rate)
        trainer.finish_step()
        communication = reduced - computed
        return Parts(loss, clock() - begin - communication, communication, communication)

    def predict(self, trainer: Trainer, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, classes)."""
        return trainer.predict(x)

    def barrier(self) -> None:
        """Wait for all ranks."""
        ...

    def leave(self) -> None:
        """Do what a library must do while its peers are there; called once, after a barrier.

        The process ends right after it, without destructors or exit handlers (`departure`): what
        would only give memory, threads and sockets back is left to the operating system.
        """

    def libraries(self) -> dict[str, str]:
        """Return the versions of what communicates, for provenance."""
        return {}


def refuse_sum(cell: TrainCell) -> str | None:
    """Return the reason of strategies that can only average."""
    return None if cell.reduce == "mean" else "it averages gradients and cannot sum them"


STRATEGIES: Registry[Strategy] = Registry("strategy", "transect.training.strategies")
