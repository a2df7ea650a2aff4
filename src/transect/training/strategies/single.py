"""One rank, nothing to agree on: the base case of every scaling claim."""

from __future__ import annotations

from transect.domain.cell import Cell
from transect.training.frameworks import Trainer
from transect.training.strategies import STRATEGIES, Place, Rendezvous

__all__ = ["Single"]


@STRATEGIES.register("single")
class Single:
    """Runs on exactly one rank."""

    rendezvous: Rendezvous = "none"

    def supports(self, cell: Cell) -> str | None:
        """One rank only."""
        return None if cell.ranks == 1 else f"single runs on 1 rank, not on {cell.ranks}"

    def join(self) -> Place:
        """Be alone."""
        return Place()

    def start(self, trainer: Trainer) -> None:
        """Nobody to tell."""

    def reduce(self, trainer: Trainer) -> None:
        """The local gradient is the mean."""

    def hidden_communication(self) -> float:
        """None."""
        return 0.0

    def barrier(self) -> None:
        """Nobody to wait for."""

    def leave(self) -> None:
        """Nobody to part from."""

    def libraries(self) -> dict[str, str]:
        """None."""
        return {}
