"""Strategies: how ranks work together. One file each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from transect.domain.cell import Cell
from transect.domain.registry import Registry
from transect.training.frameworks import Trainer

__all__ = ["STRATEGIES", "Place", "Rendezvous", "Strategy"]

# What the launcher must give the ranks: nothing, an MPI, or RANK, WORLD_SIZE, LOCAL_RANK,
# MASTER_ADDR and MASTER_PORT in the environment.
Rendezvous = Literal["none", "mpi", "tcp"]


@dataclass(slots=True)
class Place:
    """Where this rank stands: `rank` of `world_size`, `local_rank` on its node."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0


class Strategy(Protocol):
    """Keeps the ranks' models equal. A strategy object lives as long as its rank."""

    rendezvous: Rendezvous

    def supports(self, cell: Cell) -> str | None:
        """Return None, or the reason why the cell cannot run."""
        ...

    def join(self) -> Place:
        """Meet the other ranks; called once, before the model is built."""
        ...

    def start(self, trainer: Trainer) -> None:
        """Give every rank the weights of rank 0."""
        ...

    def reduce(self, trainer: Trainer) -> None:
        """Turn local gradients into the mean over ranks, between backward and update."""
        ...

    def hidden_communication(self) -> float:
        """Seconds spent communicating inside the last backward pass (0 when there is none)."""
        ...

    def barrier(self) -> None:
        """Wait for all ranks."""
        ...

    def leave(self) -> None:
        """Part in order; called once, after the last step."""
        ...

    def libraries(self) -> dict[str, str]:
        """Return the versions of what communicates, for provenance."""
        ...


STRATEGIES: Registry[Strategy] = Registry("strategy", "transect.training.strategies")
