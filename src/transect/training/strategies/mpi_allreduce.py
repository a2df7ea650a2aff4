"""All-reduce of one flat gradient buffer over MPI, for every framework."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.strategies import STRATEGIES
from transect.training.strategies._mpi import MpiStrategy
from transect.training.traffic import Traffic


@STRATEGIES.register("mpi-allreduce", "allreduce")
class MpiAllreduce(MpiStrategy):
    """MPI_Allreduce(SUM) in place."""

    accumulates = True

    def traffic(self, cell: TrainCell) -> Traffic:
        return Traffic(pattern="allreduce", carrier="mpi")
