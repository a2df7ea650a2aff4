"""A strategy in one file: reduce to rank 0, then broadcast."""

import numpy as np

from transect.training.strategies import STRATEGIES
from transect.training.strategies._mpi import MpiStrategy


@STRATEGIES.register("extra-reduce-broadcast")
class ReduceBroadcast(MpiStrategy):
    """MPI_Reduce and MPI_Bcast."""

    def add(self, flat: np.ndarray) -> None:
        total = np.zeros_like(flat)
        self.comm.Reduce(flat, total, root=0)
        self.comm.Bcast(total, root=0)
        flat[...] = total
