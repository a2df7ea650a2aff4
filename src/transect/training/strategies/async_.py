"""Asynchronous updates: a parameter server on rank 0, workers that may be some steps apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option
from transect.domain.precisions import find_precision
from transect.training.frameworks import Framework, ModelPlan, Trainer
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES, Parts
from transect.training.strategies._mpi import MpiStrategy
from transect.training.strategies._parameter_server import Server, Worker, WorkerPart
from transect.training.workloads import WORKLOADS, model_of

UNBOUNDED = "unbounded"
# All workers, from the first step to the last.
ALL = "all"


@STRATEGIES.register("async", "parameter-server")
class Async(MpiStrategy):
    """Rank 0 holds the weights and the optimiser, and applies each worker's gradient when it arrives.

    A worker fetches the newest weights before each of its steps. It may be `staleness` steps ahead of the
    slowest worker (Q. Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
    server", 2013); 0 is the synchronous path, held to the reference. What server and workers say
    to each other: `_parameter_server`.

    A gradient, the mean over the worker's own part, is an update of the server's optimiser at the
    learning rate over the number of workers: as many updates as workers move the weights as far as a
    synchronous step, by a rule that is linear in the gradient. Momentum and averages move on with each of them.

    Workers may come and go (`workers`). The batch stays cut as if all were there, and those who are compute the others'
    parts too: a training has as many gradients, at the same rates, and with staleness 0 it is the reference's path.

    Rank 0 trains nothing. A thread beside a worker would leave no rank idle, but share its interpreter and its
    framework with that worker: the others' weights would come when it lets go, and their staleness
    would be that of the interpreter.
    """

    counts_gradients = True
    options: Mapping[str, Option] = MappingProxyType(
        {
            "staleness": Option(
                default=2,
                min=0,
                pattern=UNBOUNDED,
                example=UNBOUNDED,
                null=UNBOUNDED,
                description="steps that a worker may be ahead of the slowest one; 0: all step together, as in synchronous "
                "training; null: no bound",
            ),
            "workers": Option(
                default=ALL,
                choices=(ALL,),
                pattern=r"[1-9]\d*(-[1-9]\d*)+",
                example="1-3-2",
                description="how many workers are there in each of equal spans of the training's steps, such as first 1, then 3, "
                "then 2; worker 1 always is, and a rank that is not there waits without using its core",
            ),
        }
    )

    def supports(self, cell: TrainCell) -> str | None:
        if cell.ranks < 2:
            return "rank 0 is the server and trains nothing: it takes at least 2 ranks"
        if there := self.layout(cell).workers:
            if max(there) != cell.ranks - 1:
                return f"a server and at most {max(there)} workers are {max(there) + 1} ranks, not {cell.ranks}"
            if model_of(WORKLOADS.get(cell.workload)).parts_matter:
                return "a worker that computes others' parts too has no running statistics of its own part alone"
            if cell.input == "files":
                return "files are read ahead for the parts of one rank, and workers that come and go change theirs"
        return super().supports(cell)

    def layout(self, cell: TrainCell) -> Layout:
        told = self.settings(cell)["workers"]
        there = () if told == ALL else tuple(map(int, told.split("-")))
        return Layout(max(1, cell.ranks - 1), servers=1, workers=there)

    def unchecked(self, cell: TrainCell) -> str | None:
        """With a staleness no step need be the reference's."""
        if self.settings(cell)["staleness"] == 0:
            return None
        return "asynchronous: which updates lie behind a gradient depends on who is faster"

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        trainer = super().trainer(framework, plan, cell)
        self.tells_loss = self.comm.rank > 0
        if self.tells_loss:
            self._side: Server | Worker = Worker(self.comm, plan)
            return trainer
        _make_gradients(plan, trainer)
        bound = self.settings(cell)["staleness"]
        self._side = self.server(
            self.comm, plan, trainer, staleness=None if bound == UNBOUNDED else bound, mean=self.operation == "mean"
        )
        return trainer

    # What rank 0 becomes.
    server = Server

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """A worker's is one gradient, the server's as many as there are workers."""
        if isinstance(self._side, Server):
            # Where workers come and go, `x` is how many are there.
            return self._side.step(trainer, learning_rate, there=x if isinstance(x, int) else None)
        parts = [(self.comm.rank - 1, x, y)] if y is not None else cast("Iterable[WorkerPart]", x)
        return self._side.step(trainer, parts)

    def end_epoch(self) -> None:
        """Go on: a worker waits for no test but at its next request."""

    def finish(self, trainer: Trainer) -> None:
        """Give all ranks the weights that the server has in the end."""
        self._side.end(trainer)

    def predict(self, trainer: Trainer, x: np.ndarray) -> np.ndarray:
        self._settle(trainer)
        return super().predict(trainer, x)

    def weights(self, trainer: Trainer) -> dict[str, np.ndarray]:
        self._settle(trainer)
        return super().weights(trainer)

    def series(self) -> dict[str, np.ndarray]:
        """Of the server: what became of each gradient."""
        return self._side.series() if isinstance(self._side, Server) else {}

    def details(self) -> dict[str, Any]:
        return {"role": "worker" if self.tells_loss else "server", **self._side.ledger}

    def _settle(self, trainer: Trainer) -> None:
        if isinstance(self._side, Server):
            self._side.settle(trainer)


def _make_gradients(plan: ModelPlan, trainer: Trainer) -> None:
    """Let a trainer that will never compute a gradient have the arrays that one goes into.

    In most frameworks the first backward pass makes them. Random samples do; the weights are then
    those of the plan again.
    """
    generator = np.random.default_rng(0)
    x, y = (np.stack(arrays) for arrays in zip(*(plan.model.draw(generator) for _ in range(plan.batch)), strict=True))
    if x.dtype.kind == "f":
        x = x.astype(find_precision(plan.precision).array)
    trainer.forward_backward(*trainer.batch(x, y))
    trainer.load(plan.weights)
