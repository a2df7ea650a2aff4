"""S-Caffe's SC-OB and SC-OBR: weights, and in the second gradients too, go layer by layer while other layers compute."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option
from transect.training.frameworks import Trainer
from transect.training.strategies import STRATEGIES, Parts
from transect.training.strategies._mpi import to_root
from transect.training.strategies._overlap import Overlapped
from transect.training.strategies._progress import Flight
from transect.training.traffic import Traffic


@STRATEGIES.register("mpi-overlap")
class MpiOverlap(Overlapped):
    """MPI_Ibcast before each layer's forward pass, MPI_Ireduce after its backward pass (SC-OBR).

    Or MPI_Iallreduce after its backward pass, no broadcast, and all ranks update alike.
    """

    options: Mapping[str, Option] = MappingProxyType(
        {
            **Overlapped.options,
            "reduce": Option(
                default="root",
                choices=("root", "all"),
                description="who gets the sum: rank 0, which updates and broadcasts, or all ranks",
            ),
        }
    )

    def traffic(self, cell: TrainCell) -> Traffic:
        to_all = self.settings(cell)["reduce"] == "all"
        return self.layerwise_traffic(cell, "overlap-allreduce" if to_all else "overlap")

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """Both passes overlap with messages; updates wait for the sums, the last layer's first."""
        begin = time.perf_counter()
        to_all = self._set["reduce"] == "all"
        flights = [] if self.alone or to_all else self.send_weights()
        sums: list[tuple[int, np.ndarray, Flight | None]] = []

        def send_gradient(number: int) -> None:
            flat = self._model.parts[number].gradient()
            sums.append((number, flat, None if self.alone else self._send(flat, to_all)))
            self._progress.poll()

        loss = self._model.passes(x, y, lambda number: self.take_weights(number, flights), send_gradient)
        for number, flat, flight in sums:
            if flight is not None:
                self._progress.wait(flight)
            if self.root or to_all:
                self.update(number, flat, learning_rate)
        return self.parts(loss, begin)

    def _send(self, flat: np.ndarray, to_all: bool) -> Flight:
        from mpi4py import MPI

        if to_all:
            return self._progress.queue(flat.nbytes, self._comm.Iallreduce, MPI.IN_PLACE, flat, op=MPI.SUM)
        return self._progress.queue(flat.nbytes, self._comm.Ireduce, *to_root(self._comm, flat), op=MPI.SUM, root=0)


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
