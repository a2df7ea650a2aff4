"""The published all-reduce of parallel training in Go: the sum of scaled changes, without a mean."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.strategies import STRATEGIES
from transect.training.strategies._published import PublishedStrategy
from transect.training.traffic import Traffic


@STRATEGIES.register("published-allreduce")
class PublishedAllreduce(PublishedStrategy):
    """MPI_Allreduce(SUM) of each batch's changes."""

    def traffic(self, cell: TrainCell) -> Traffic:
        return Traffic(pattern="allreduce", carrier="mpi")
