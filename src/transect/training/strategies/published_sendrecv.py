"""The published Send/Recv of parallel training in Go: rank 0 does not train, it adds and sends back."""

from __future__ import annotations

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import Framework, ModelPlan, Trainer
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES, Place
from transect.training.strategies._published import PublishedStrategy
from transect.training.workloads import WORKLOADS, model_of


@STRATEGIES.register("published-sendrecv")
class PublishedSendrecv(PublishedStrategy):
    """Rank 0 receives changes in rank order, sums them and sends the sum to each rank.

    It has the weights, and tests them, but its share of the batches is nothing: ranks - 1 replicas.
    """

    def supports(self, cell: TrainCell) -> str | None:
        if cell.ranks < 2:
            return "rank 0 does not train: expected at least 2 ranks"
        if model_of(WORKLOADS.get(cell.workload)).parts_matter:
            return "rank 0 sees no batch, so its batch norms would keep their first statistics"
        return super().supports(cell)

    def layout(self, cell: TrainCell) -> Layout:
        return Layout(max(1, cell.ranks - 1), servers=1)

    def join(self) -> Place:
        """Initialise MPI; rank 0 has no loss."""
        place = super().join()
        self.tells_loss = place.rank > 0
        return place

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        """Build it; rank 0 needs the memory of a gradient, which frameworks make in a backward pass."""
        trainer = framework.trainer(plan)
        if self.comm.rank == 0:
            x, y = (np.asarray(array)[None] for array in plan.model.draw(np.random.default_rng(0)))
            trainer.forward_backward(*trainer.batch(x, y))
        return trainer

    def compute(self, trainer: Trainer, x: object, y: object) -> float:
        return super().compute(trainer, x, y) if self.comm.rank else float("nan")

    def add(self, flat: np.ndarray) -> None:
        """Collect on rank 0 and send back: 2 (p - 1) messages through one rank."""
        comm = self.comm
        if comm.rank:
            comm.Send(flat, dest=0)
            comm.Recv(flat, source=0)
            return
        # Whatever lies in it is no change of this rank's.
        comm.Recv(flat, source=1)
        incoming = np.empty_like(flat)
        for source in range(2, comm.size):
            comm.Recv(incoming, source=source)
            flat += incoming
        for target in range(1, comm.size):
            comm.Send(flat, dest=target)
