"""Horovod for MXNet: what its DistributedTrainer does between backward and update."""

from __future__ import annotations

import time
from typing import Any

from transect.training.strategies import Operation, Parts

__all__ = ["MxnetAdapter"]


class MxnetAdapter:
    """All gradients at once, in place, the first layers' with the highest priority.

    The trainer waits for its last gradient, so nothing is hidden behind the backward pass.
    """

    def __init__(self, hvd: Any, trainer: Any, operation: Operation) -> None:
        self._hvd, self._trainer = hvd, trainer
        # One rank sends nothing, as with Horovod's own trainer.
        self._gradients = trainer.gradients if hvd.size() > 1 else []
        self._operation = hvd.Average if operation == "mean" else hvd.Sum

    def step(self, x: object, y: object, learning_rate: float) -> Parts:
        """Communication is from the last gradient to the last reduction."""
        clock, trainer = time.perf_counter, self._trainer
        begin = clock()
        loss = trainer.forward_backward(x, y)
        computed = clock()
        for index, gradient in enumerate(self._gradients):
            self._hvd.allreduce_(
                gradient, op=self._operation, name=f"gradient.{index}", priority=-index
            )
        trainer.mx.nd.waitall()
        communication = clock() - computed
        trainer.update(learning_rate)
        trainer.finish_step()
        return Parts(loss, clock() - begin - communication, communication, communication)

    def barrier(self) -> None:
        """An all-reduce of one number."""
        number = self._trainer.mx.nd.zeros(1)
        self._hvd.allreduce_(number, op=self._hvd.Sum, name="barrier")
        number.wait_to_read()
