"""One rank, nothing to agree on: the base case of every scaling claim."""

from __future__ import annotations

import time

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FusedTrainer, Trainer
from transect.training.strategies import STRATEGIES, Parts, Place, Strategy
from transect.training.traffic import Traffic


@STRATEGIES.register("single")
class Single(Strategy):
    """Runs on exactly one rank."""

    accumulates = True

    def supports(self, cell: TrainCell) -> str | None:
        return None if cell.ranks == 1 else f"single runs on 1 rank, not on {cell.ranks}"

    def traffic(self, cell: TrainCell) -> Traffic:
        return Traffic(pattern="none", carrier="none")

    def join(self) -> Place:
        return Place()

    def start(self, trainer: Trainer) -> None:
        """Take the framework's own way to do a whole step, where it has one."""
        self._fused = trainer if isinstance(trainer, FusedTrainer) else None

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        begin = time.perf_counter()
        if self._fused is not None:
            loss = self._fused.step(x, y, learning_rate)
        else:
            loss = trainer.forward_backward(x, y)
            trainer.update(learning_rate)
        trainer.finish_step()
        return Parts(loss, time.perf_counter() - begin, 0.0, 0.0)

    def barrier(self) -> None:
        """Nobody to wait for."""
