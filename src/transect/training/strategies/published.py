"""The two published strategies of parallel training in Go: changes scaled by the learning rate are summed, not averaged."""

from __future__ import annotations

import time

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import Framework, ModelPlan, Trainer
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES, Parts, Place
from transect.training.strategies._mpi import MpiStrategy
from transect.training.traffic import Traffic
from transect.training.workloads import WORKLOADS, Parameters, model_of


class _Published(MpiStrategy):
    """Each rank makes its change of the weights, and all add the same sum of changes to theirs.

    As in the study of parallel training in Go (2022): the weights of rank 0 go to all once; a change is
    learning rate times gradient; nothing divides by the number of ranks. So each step counts as many
    times as ranks train, and a cell has to say so: `reduce: sum`.
    """

    def supports(self, cell: TrainCell) -> str | None:
        if cell.reduce != "sum":
            return "as published it sums changes and takes no mean: a grid says so by `reduce: [sum]`"
        return None

    def follows(self, parameters: Parameters) -> str | None:
        """Plain stochastic gradient descent alone: a change is learning rate times gradient."""
        if parameters.optimiser != "sgd" or parameters.momentum or parameters.weight_decay:
            return (
                "as published a change is learning rate times gradient: expected sgd with momentum 0 "
                f"and weight_decay 0, got {parameters.optimiser} with {parameters.momentum:g} and "
                f"{parameters.weight_decay:g}"
            )
        if parameters.clip_norm is not None:
            return "as published a change is learning rate times gradient, which nothing clips"
        return None

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        clock = time.perf_counter
        begin = clock()
        loss = self.compute(trainer, x, y)
        changes = trainer.gradient()
        changes *= learning_rate
        computed = clock()
        if self.comm.size > 1:
            self.add(changes)
        added = clock()
        trainer.set_gradient(changes)
        # They hold the learning rate.
        trainer.update(1.0)
        trainer.finish_step()
        communication = added - computed
        return Parts(loss, clock() - begin - communication, communication, communication)

    def compute(self, trainer: Trainer, x: object, y: object) -> float:
        """Leave this rank's gradient in the trainer; return the loss."""
        return trainer.forward_backward(x, y)


@STRATEGIES.register("published-allreduce")
class PublishedAllreduce(_Published):
    """MPI_Allreduce(SUM) of each batch's changes."""

    def traffic(self, cell: TrainCell) -> Traffic:
        return Traffic(pattern="allreduce", carrier="mpi")


@STRATEGIES.register("published-sendrecv")
class PublishedSendrecv(_Published):
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
