"""All-reduce of one flat gradient buffer over MPI, for every framework."""

from __future__ import annotations

import numpy as np

from transect.training.strategies import STRATEGIES
from transect.training.strategies._mpi import MpiStrategy

__all__ = ["MpiAllreduce"]


@STRATEGIES.register("mpi-allreduce")
class MpiAllreduce(MpiStrategy):
    """MPI_Allreduce(SUM) in place."""

    def add(self, flat: np.ndarray) -> None:
        """Sum over all ranks."""
        from mpi4py import MPI

        self.comm.Allreduce(MPI.IN_PLACE, flat, op=MPI.SUM)
