"""What the two published strategies share: changes scaled by the learning rate are summed, not averaged."""

from __future__ import annotations

import time

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import Trainer
from transect.training.strategies import Parts
from transect.training.strategies._mpi import MpiStrategy
from transect.training.workloads import Parameters


class PublishedStrategy(MpiStrategy):
    """Each rank makes its change of the weights, and all add the same sum of changes to theirs.

    As in the study of parallel training in Go (2022): the weights of rank 0 go to all once; a change is
    learning rate times gradient; nothing divides by the number of ranks. So each step counts as many
    times as ranks train, and a cell has to say so: `reduce: sum`.
    """

    def supports(self, cell: TrainCell) -> str | None:
        if cell.reduce != "sum":
            return "as published it sums changes and takes no mean: a grid says so by `reduce: [sum]`"
        return None

    def follows(self, parameters: Parameters) -> str | None:
        """Plain stochastic gradient descent alone: a change is learning rate times gradient."""
        if parameters.optimiser != "sgd" or parameters.momentum or parameters.weight_decay:
            return (
                "as published a change is learning rate times gradient: expected sgd with momentum 0 "
                f"and weight_decay 0, got {parameters.optimiser} with {parameters.momentum:g} and "
                f"{parameters.weight_decay:g}"
            )
        return None

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        clock = time.perf_counter
        begin = clock()
        loss = self.compute(trainer, x, y)
        changes = trainer.gradient()
        changes *= learning_rate
        computed = clock()
        if self.comm.size > 1:
            self.add(changes)
        added = clock()
        trainer.set_gradient(changes)
        # They hold the learning rate.
        trainer.update(1.0)
        trainer.finish_step()
        communication = added - computed
        return Parts(loss, clock() - begin - communication, communication, communication)

    def compute(self, trainer: Trainer, x: object, y: object) -> float:
        """Leave this rank's gradient in the trainer; return the loss."""
        return trainer.forward_backward(x, y)
