"""Strategies: how ranks work together. One file each."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option, Options, Value, chosen_options, settings
from transect.domain.registry import Plugin, Registry
from transect.training.frameworks import Framework, ModelPlan, Trainer
from transect.training.layout import Layout
from transect.training.traffic import Traffic
from transect.training.workloads import Parameters

__all__ = ["STRATEGIES", "Operation", "Parts", "Place", "Strategy", "strategy_options"]

Operation = Literal["mean", "sum"]


@dataclass(slots=True)
class Place:
    """Where this rank stands: `rank` of `world_size`, `local_rank` on its node."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0


class Parts(NamedTuple):
    """What one step was made of, in seconds on this rank.

    `compute`: forward, backward and update. `communication`: the time in which this rank did nothing but wait for
    messages; the two add up to the step, apart from its input. `under_way`: how long messages were under way, hidden
    behind computing or not. NaN stands for what a library does not tell: `under_way` alone, or all three. `bubble`:
    that part of `communication` in which a stage of a pipeline waited for its neighbours' results.
    """

    loss: float
    compute: float
    communication: float
    under_way: float
    bubble: float = 0.0


class Strategy(Plugin, ABC):
    """Keeps the ranks' models equal. A strategy object lives as long as its rank.

    Subclasses give `supports`, `join`, `barrier`, and `reduce` or `step`; all else has a default.
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
    # Whether a rank updates parts of a weight's array, not all of it.
    splits_weights: bool = False
    # Whether parts of the model are updated by themselves, on several ranks or at different times.
    splits_update: bool = False
    # Whether it asks nothing of a trainer but what `Trainer` has, so that one that accumulates gradients will do.
    accumulates: bool = False
    # Frameworks whose own trainer accumulates gradients under it.
    accumulates_in: tuple[str, ...] = ()
    # Options of its cells by name.
    options: Mapping[str, Option] = MappingProxyType({})
    # Whether this rank's steps tell a loss; of a pipeline only the last stage has one, the others
    # give NaN. Known after `trainer`. At least one rank of each replica tells, all of it the same.
    tells_loss: bool = True
    # Whether its ranks count the gradients that they send and apply (`details`), which must agree.
    counts_gradients: bool = False

    @abstractmethod
    def supports(self, cell: TrainCell) -> str | None:
        """Return None, or the reason why the cell cannot run."""

    def layout(self, cell: TrainCell) -> Layout:
        """Return how many ranks share the data, and how many a model: all share the data.

        Batches, learning rates, costs and the reference follow it. The loss that a rank gives is
        that of its replica's share.
        """
        return Layout(cell.ranks)

    def follows(self, parameters: Parameters) -> str | None:
        """Return None, or the reason why it cannot train by these hyper-parameters."""
        return None

    def unchecked(self, cell: TrainCell) -> str | None:
        """Return why the cell's steps cannot be held to the reference's, or None: they are.

        Such a cell has no equality; it is judged by its time to quality, and no claim on it is confirmed.
        """
        return None

    def settings(self, cell: TrainCell) -> dict[str, Any]:
        """Return every option with its value in the cell."""
        return settings(self.options, cell.options)

    @abstractmethod
    def join(self) -> Place:
        """Meet the other ranks; called once, before the model is built."""

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        """Build this rank's trainer; called once, after `join`. It holds the whole model here.

        Where a rank holds some layers only, it gives those: what `Trainer` asks for beyond
        `forward_backward` is asked of its own arrays.
        """
        return framework.trainer(plan)

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

    def end_epoch(self) -> None:
        """Stand between two epochs, behind the test of the first: all ranks wait for one another."""
        self.barrier()

    def finish(self, trainer: Trainer) -> None:
        """Do what remains after the last step; called once on all ranks, before weights are asked for."""

    def predict(self, trainer: Trainer, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, classes)."""
        return trainer.predict(x)

    def weights(self, trainer: Trainer) -> dict[str, np.ndarray]:
        """Return copies of all weights of the whole model, in the neutral layout.

        Called on rank 0, or where `sharded` on all ranks, of which rank 0's answer counts.
        """
        return trainer.weights()

    @abstractmethod
    def barrier(self) -> None:
        """Wait for all ranks."""

    def leave(self) -> None:
        """Do what a library must do while its peers are there; called once, after a barrier.

        The process ends right after it, without destructors or exit handlers (`departure`): what
        would only give memory, threads and sockets back is left to the operating system.
        """

    def traffic(self, cell: TrainCell) -> Traffic | None:
        """Return how its ranks communicate in a step, for predictions; None: unknown."""
        return None

    def libraries(self) -> dict[str, str]:
        """Return the versions of what communicates, for provenance."""
        return {}

    def series(self) -> dict[str, np.ndarray]:
        """Return raw samples of its own, by the name of their metric; what rank 0 gives is kept."""
        return {}

    def details(self) -> dict[str, Any]:
        """Return what a record should say of how this rank worked, such as its layers: JSON."""
        return {}


STRATEGIES: Registry[Strategy] = Registry("strategy", "transect.training.strategies", Strategy)


def strategy_options(name: str, given: Mapping[str, Value | None], where: str) -> Options:
    """Return options of a strategy's cells as their axis holds them. Raises BadInput at `where`."""
    return chosen_options(f"strategy {name}", STRATEGIES.get(name).options, given, where)
