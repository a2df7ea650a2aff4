"""Rank 0 receives every gradient in rank order, adds them up, and sends the sum back."""

from __future__ import annotations

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.strategies import STRATEGIES
from transect.training.strategies._mpi import MpiStrategy
from transect.training.traffic import Traffic


@STRATEGIES.register("mpi-sendrecv")
class MpiSendrecv(MpiStrategy):
    """The published Send/Recv scheme; here rank 0 computes its share too, so no rank is idle."""

    accumulates = True

    def traffic(self, cell: TrainCell) -> Traffic:
        return Traffic(pattern="through-root", carrier="mpi")

    def add(self, flat: np.ndarray) -> None:
        """Collect on rank 0 and send back: 2 (p - 1) messages through one rank."""
        comm = self.comm
        if comm.rank == 0:
            incoming = np.empty_like(flat)
            for source in range(1, comm.size):
                comm.Recv(incoming, source=source)
                flat += incoming
            for target in range(1, comm.size):
                comm.Send(flat, dest=target)
        else:
            comm.Send(flat, dest=0)
            comm.Recv(flat, source=0)
