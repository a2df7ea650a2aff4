"""Strategies with one mistake each, as they are made: fast, and wrong. And some that stop or send nonsense."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np

from transect.training.frameworks import ModelPlan, Trainer
from transect.training.strategies import STRATEGIES, Parts
from transect.training.strategies.mpi_overlap import MpiOverlap, MpiOverlapBcast
from transect.training.strategies.mpi_pipeline import MpiPipeline
from transect.training.strategies.spatial import Spatial

# What goes wrong once does so in this step, in this micro-batch.
STEP, MICRO_BATCH = 3, 2


@STRATEGIES.register("seeded-weight")
class MicroBatchWeight(MpiPipeline):
    """Each micro-batch counts 1/M, as if all had the same size."""

    def _forward(self, chain: Any, i: int, x: Any, y: Any, weight: float) -> float:
        if not self.tells_loss or self._inbox is None:
            return super()._forward(chain, i, x, y, weight)
        loss: float = chain.loss(i, self._inbox.take(i), y, 1 / self._layout.micro_batches)
        return weight * loss


@STRATEGIES.register("seeded-late")
class LateReduction(MpiOverlap):
    """The first layers' sum comes too late: they are updated by that of the step before."""

    _late: np.ndarray | None = None

    def update(self, number: int, flat: np.ndarray, learning_rate: float) -> None:
        if number == 0:
            fresh = flat.copy()
            flat[...] = 0 if self._late is None else self._late
            self._late = fresh
        super().update(number, flat, learning_rate)


@STRATEGIES.register("seeded-stale")
class StaleBroadcast(MpiOverlapBcast):
    """The last rank computes the first layers with the weights of the step before."""

    _stale: dict[str, np.ndarray] | None = None

    def take_weights(self, number: int, flights: list[Any]) -> None:
        super().take_weights(number, flights)
        if number == 0 and self._comm.rank == self._comm.size - 1:
            fresh = {name: view.copy() for name, view in self._buffers[0].views.items()}
            self._model.parts[0].load(fresh if self._stale is None else self._stale)
            self._stale = fresh


@STRATEGIES.register("seeded-halo")
class HaloOffByOne(Spatial):
    """A rank sends the row beside the one that its neighbour needs."""

    def build(self, plan: ModelPlan, cell: Any) -> Trainer:
        from dataclasses import replace

        from transect.training.strategies import _torch_rows

        right = _torch_rows.Halo

        class Shifted:
            @staticmethod
            def of_windows(*given: int) -> Any:
                halo = right.of_windows(*given)
                first, last = halo.local
                moved = []
                for number, (a, b) in halo.sends:
                    by = -1 if a > first else 1 if b < last else 0
                    moved.append((number, (a + by, b + by)))
                return replace(halo, sends=tuple(moved))

            of_all = right.of_all

        _torch_rows.Halo = Shifted  # type: ignore[misc, assignment]
        return super().build(plan, cell)


class _Once(MpiPipeline):
    """Something happens to the first stage's outputs of one micro-batch in one step."""

    _step = -1

    def step(self, trainer: Trainer, x: Any, y: Any, learning_rate: float) -> Parts:
        self._step += 1
        return super().step(trainer, x, y, learning_rate)

    def trainer(self, *given: Any) -> Trainer:
        made: Any = super().trainer(*given)
        if self._stage == 0:
            forward = made.forward

            def changed(i: int, x: Any) -> np.ndarray:
                outputs: np.ndarray = forward(i, x)
                return self.changed(outputs) if (self._step, i) == (STEP, MICRO_BATCH) else outputs

            made.forward = changed
        return made  # type: ignore[no-any-return]

    def changed(self, outputs: np.ndarray) -> np.ndarray:
        raise NotImplementedError


@STRATEGIES.register("seeded-nan")
class NanInAMicroBatch(_Once):
    def changed(self, outputs: np.ndarray) -> np.ndarray:
        return np.full_like(outputs, np.nan)


@STRATEGIES.register("seeded-short")
class MismatchedSend(_Once):
    """A sample less than the next stage expects."""

    def changed(self, outputs: np.ndarray) -> np.ndarray:
        return outputs[:-1].copy()


@STRATEGIES.register("seeded-stops")
class NoProgress(_Once):
    def changed(self, outputs: np.ndarray) -> np.ndarray:
        print("nothing goes on from here", flush=True)
        threading.Event().wait()
        return outputs


@STRATEGIES.register("seeded-killed")
class Killed(MpiPipeline):
    """The middle stage is killed between two micro-batches."""

    _done = 0

    def _backward(self, chain: Any, i: int, reducing: Any) -> None:
        self._done += 1
        if self._stage == 1 and self._done == 8:
            print(f"killed at {time.time()}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        super()._backward(chain, i, reducing)
