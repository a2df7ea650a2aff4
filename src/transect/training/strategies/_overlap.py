"""The common base of strategies that overlap communication with computation, layer by layer."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option
from transect.domain.precisions import find_precision
from transect.training.frameworks import Framework, ModelPlan, PartFramework, Trainer
from transect.training.parts import part_weights
from transect.training.strategies import Parts, Place
from transect.training.strategies._layerwise import LayerwiseTrainer, no_layers, weighty_parts
from transect.training.strategies._mpi import MpiStrategy
from transect.training.strategies._progress import PROGRESS, WAIT, Flight, Progress
from transect.training.strategies._root import WeightBuffer
from transect.training.traffic import Traffic
from transect.training.workloads import WORKLOADS, model_of

BUCKET_BYTES = Option(
    default=0,
    min=0,
    description="layers are joined until their weights have so many bytes; 0: each layer with weights "
    "has messages of its own",
)

# Of its own Open MPI cuts an Ireduce among few ranks in rounds of 32 KiB, and begins each only when it
# is called again: 1 MiB took 0.5 ms of a rank that calls all the time, 80 and more of one that sleeps
# between its calls. Binomial trees of whole messages took 0.2 and 0.3 ms.
FEW_ROUNDS = {"OMPI_MCA_coll_libnbc_ibcast_algorithm": "2", "OMPI_MCA_coll_libnbc_ireduce_algorithm": "2"}


class Overlapped(MpiStrategy):
    """Every layer with weights is a part, and has a message of its own in each direction.

    Layers are parts because all frameworks have them: it does not need hooks, which fire on no layer
    that a pass does not use, so that the other ranks would wait for ever.
    """

    splits_update = True

    options: Mapping[str, Option] = MappingProxyType({"progress": PROGRESS, "wait": WAIT, "bucket_bytes": BUCKET_BYTES})

    def supports(self, cell: TrainCell) -> str | None:
        return no_layers(cell)

    def layerwise_traffic(self, cell: TrainCell, pattern: str) -> Traffic:
        """Return the traffic of a pattern whose messages are those of each part."""
        model = model_of(WORKLOADS.get(cell.workload))
        given = self.settings(cell)
        itemsize = np.dtype(find_precision(cell.precision).array).itemsize
        parts = weighty_parts(model, given["bucket_bytes"], itemsize)
        return Traffic(
            pattern=pattern,
            carrier="mpi",
            progress=given["progress"] != "none",
            cuts=tuple(part.first for part in parts[1:]),
            copies=1 if pattern == "overlap-allreduce" else 2,
        )

    def join(self) -> Place:
        """Initialise MPI, with collective operations of few rounds unless the user has chosen."""
        for name, value in FEW_ROUNDS.items():
            os.environ.setdefault(name, value)
        return super().join()

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        self._set = self.settings(cell)
        itemsize = np.dtype(find_precision(plan.precision).array).itemsize
        cut = weighty_parts(plan.model, self._set["bucket_bytes"], itemsize)
        # `supports` has checked it.
        assert isinstance(framework, PartFramework)
        self._model = LayerwiseTrainer(framework, plan, cut)
        self._buffers = [WeightBuffer(part_weights(plan.model, part), plan.precision) for part in cut]
        self._progress = Progress(self._set["progress"], sleeps=self._set["wait"] == "sleep")
        # Its operations must begin in the same order on all ranks: all of a step's are of one queue.
        self._comm = self.comm.Dup()
        return self._model

    @property
    def root(self) -> bool:
        return bool(self._comm.rank == 0)

    @property
    def alone(self) -> bool:
        return bool(self._comm.size == 1)

    def send_weights(self) -> list[Flight]:
        """Begin to give all ranks rank 0's weights, the first part's first."""
        flights = []
        for part, buffer in zip(self._model.parts, self._buffers, strict=True):
            if self.root:
                buffer.take(part.weights())
            flat = buffer.flat
            flights.append(self._progress.queue(flat.nbytes, self._comm.Ibcast, flat, root=0))
            self._progress.poll()
        return flights

    def take_weights(self, number: int, flights: list[Flight]) -> None:
        """Wait for a part's weights, where they are not this rank's own."""
        self._progress.poll()
        if flights and not self.root:
            self._progress.wait(flights[number])
            self._model.parts[number].load(self._buffers[number].views)

    def update(self, number: int, flat: np.ndarray, learning_rate: float) -> None:
        if self.operation == "mean" and not self.alone:
            flat /= self._comm.size
        part = self._model.parts[number]
        part.set_gradient(flat)
        part.update(learning_rate)
        self._progress.poll()

    def parts(self, loss: float, begin: float) -> Parts:
        """Wait for what is left of the step that began then; return its times."""
        self._model.finish_step()
        waited, under_way = self._progress.finish_step()
        return Parts(loss, time.perf_counter() - begin - waited, waited, under_way)

    def leave(self) -> None:
        self._progress.close()
        super().leave()

    def details(self) -> dict[str, Any]:
        return {**self._set, "messages": len(self._buffers)}
