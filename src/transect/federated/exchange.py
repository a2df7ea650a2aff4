"""Ranks that share the turns of a round: every rank ends with the same numbers, in every bit."""

from __future__ import annotations

from typing import Any

import numpy as np


class Exchange:
    """What ranks tell each other; of one rank nothing."""

    rank, size = 0, 1

    def total(self, array: np.ndarray) -> np.ndarray:
        """Return the sum of the ranks' arrays: of whole numbers, or of numbers that are 0 on all ranks but one."""
        return array

    def abandon(self) -> None:
        """Let the other ranks end with this one, which goes on no further."""

    def libraries(self) -> dict[str, str]:
        """Return the versions of what sends messages."""
        return {}


class OverMpi(Exchange):
    """By MPI's all-reduce. No sum is rounded, so that its order does not matter."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi: Any = MPI
        self.rank, self.size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size

    def total(self, array: np.ndarray) -> np.ndarray:
        """Sum in place."""
        self._mpi.COMM_WORLD.Allreduce(self._mpi.IN_PLACE, array)
        return array

    def abandon(self) -> None:
        """Abort when this process ends: finalising would wait for ranks that wait for this one."""
        from mpi4py.run import set_abort_status

        set_abort_status(1)

    def libraries(self) -> dict[str, str]:
        """MPI's own words, one line."""
        return {"mpi": self._mpi.Get_library_version().strip("\0 \n").splitlines()[0]}
