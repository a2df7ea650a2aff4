"""S-Caffe's basic scheme, SC-B: broadcast of the weights, gradients reduced to rank 0, its update."""

from __future__ import annotations

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.strategies import STRATEGIES
from transect.training.strategies._mpi import to_root
from transect.training.strategies._root import RootUpdates
from transect.training.traffic import Traffic


@STRATEGIES.register("mpi-bcast-reduce")
class MpiBcastReduce(RootUpdates):
    """MPI_Bcast of all weights before each step and MPI_Reduce of all gradients after it (SC-B)."""

    accumulates = True

    def traffic(self, cell: TrainCell) -> Traffic:
        return Traffic(pattern="bcast-reduce", carrier="mpi", progress=False, copies=2)

    def spread(self, flat: np.ndarray) -> None:
        self.comm.Bcast(flat, root=0)

    def collect(self, flat: np.ndarray) -> None:
        self.comm.Reduce(*to_root(self.comm, flat), root=0)
