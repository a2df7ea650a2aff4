"""S-Caffe's SC-OB: weights come layer by layer while the layers before compute."""

from __future__ import annotations

import time

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import Trainer
from transect.training.strategies import STRATEGIES, Parts
from transect.training.strategies._mpi import to_root
from transect.training.strategies._overlap import Overlapped
from transect.training.traffic import Traffic


@STRATEGIES.register("mpi-overlap-bcast")
class MpiOverlapBcast(Overlapped):
    """MPI_Ibcast of each layer's weights, waited for before its forward pass; MPI_Reduce (SC-OB)."""

    def traffic(self, cell: TrainCell) -> Traffic:
        return self.layerwise_traffic(cell, "overlap-bcast")

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """The weights overlap with the forward passes; gradients go to rank 0 after the last pass."""
        begin = time.perf_counter()
        flights = [] if self.alone else self.send_weights()
        loss = self._model.passes(
            x, y, lambda number: self.take_weights(number, flights), lambda _: self._progress.poll()
        )
        flat = self._model.gradient()
        if not self.alone:
            for flight in flights:
                self._progress.wait(flight)
            self._progress.call(self._comm.Reduce, *to_root(self._comm, flat), root=0)
        if self.root:
            start = 0
            for number, part in enumerate(self._model.parts):
                end = start + part.gradient().size
                self.update(number, flat[start:end], learning_rate)
                start = end
        return self.parts(loss, begin)
