"""Rank 0 alone updates: its weights go to all ranks before a step, their gradients come to it after."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.precisions import find_precision
from transect.training.frameworks import Framework, ModelPlan, Trainer
from transect.training.layers import Weight
from transect.training.strategies import Parts
from transect.training.strategies._mpi import MpiStrategy


class WeightBuffer:
    """Arrays of a model, running statistics too, in one buffer `flat`; `views` has them by name."""

    def __init__(self, arrays: Iterable[Weight], precision: str) -> None:
        arrays = list(arrays)
        dtype = np.dtype(find_precision(precision).array)
        self.flat = np.empty(sum(prod(weight.shape) for weight in arrays), dtype)
        self.views: dict[str, np.ndarray] = {}
        start = 0
        for weight in arrays:
            end = start + prod(weight.shape)
            self.views[weight.name] = self.flat[start:end].reshape(weight.shape)
            start = end

    def take(self, weights: Mapping[str, np.ndarray]) -> None:
        """Copy the weights into it."""
        for name, view in self.views.items():
            view[...] = weights[name]


class RootUpdates(MpiStrategy, ABC):
    """The optimiser's states live on rank 0. The other ranks' weights are those of the step's begin.

    Running statistics go along, as parameters do: rank 0's follow its own share of each batch.
    """

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        self._buffer = WeightBuffer(plan.model.weight_shapes(), plan.precision)
        return super().trainer(framework, plan, cell)

    @abstractmethod
    def collect(self, flat: np.ndarray) -> None:
        """Turn rank 0's buffer into the sum over ranks; the others' may be spoilt."""

    @abstractmethod
    def spread(self, flat: np.ndarray) -> None:
        """Give all ranks what is in rank 0's buffer."""

    def add(self, flat: np.ndarray) -> None:
        self.collect(flat)
        self.spread(flat)

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """Spread, compute, collect, update. A rank waits in both; nothing hides behind computing."""
        clock = time.perf_counter
        begin = clock()
        root, alone = self.comm.rank == 0, self.comm.size == 1
        waited = 0.0
        if not alone:
            if root:
                self._buffer.take(trainer.weights())
            waited -= clock()
            self.spread(self._buffer.flat)
            waited += clock()
            if not root:
                trainer.load(self._buffer.views)
        loss = trainer.forward_backward(x, y)
        if not alone:
            flat = trainer.gradient()
            waited -= clock()
            self.collect(flat)
            waited += clock()
            if root:
                if self.operation == "mean":
                    flat /= self.comm.size
                trainer.set_gradient(flat)
        if root:
            trainer.update(learning_rate)
        trainer.finish_step()
        return Parts(loss, clock() - begin - waited, waited, waited)
