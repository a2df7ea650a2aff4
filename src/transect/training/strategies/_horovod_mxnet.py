"""Horovod for MXNet: what its DistributedTrainer does between backward and update."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from transect.training.strategies import Operation, Parts
from transect.training.strategies.horovod import Adapter


class MxnetAdapter(Adapter):
    """All gradients at once, in place, the first layers' with the highest priority.

    The trainer waits for its last gradient, so nothing is hidden behind the backward pass.
    """

    def __init__(self, hvd: Any, trainer: Any, operation: Operation) -> None:
        self._hvd, self._trainer = hvd, trainer
        # One rank sends nothing, as with Horovod's own trainer.
        self._gradients = trainer.gradients if hvd.size() > 1 else []
        self._operation = hvd.Average if operation == "mean" else hvd.Sum

    @staticmethod
    def of_rank_0(hvd: Any, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return rank 0's weights on all ranks: a sum in which the others have zeros.

        No broadcast: Horovod 0.28.1 reads a broadcast's name once more when it is sent already,
        and MXNet may have freed it by then. Thousands of them in a row crash.
        """
        import mxnet as mx

        found = {}
        for name, array in weights.items():
            contribution = array if hvd.rank() == 0 else np.zeros_like(array)
            shared = mx.nd.array(contribution, dtype=array.dtype)
            hvd.allreduce_(shared, op=hvd.Sum, name=f"weights.{name}")
            found[name] = shared.asnumpy()
        return found

    def step(self, x: object, y: object, learning_rate: float) -> Parts:
        clock, trainer = time.perf_counter, self._trainer
        begin = clock()
        loss = trainer.forward_backward(x, y)
        computed = clock()
        for index, gradient in enumerate(self._gradients):
            self._hvd.allreduce_(gradient, op=self._operation, name=f"gradient.{index}", priority=-index)
        trainer.mx.nd.waitall()
        communication = clock() - computed
        trainer.update(learning_rate)
        trainer.finish_step()
        return Parts(loss, clock() - begin - communication, communication, communication)

    def barrier(self) -> None:
        number = self._trainer.mx.nd.zeros(1)
        self._hvd.allreduce_(number, op=self._hvd.Sum, name="barrier")
        number.wait_to_read()
