"""One client after another, by a framework's own trainer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

import numpy as np

from transect.domain.axes.federate import FederateCell
from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.domain.precisions import find_precision
from transect.federated.engines import ENGINES, Engine, Session, Task, Turn, Turned
from transect.federated.engines._pieces import pieces
from transect.federated.flat import arrays_of, flat_of
from transect.training.frameworks import (
    FRAMEWORKS,
    FusedTrainer,
    ModelPlan,
    ProgramFramework,
    ResumableTrainer,
    Trainer,
    TrainingState,
)
from transect.training.models import Model
from transect.training.optimisers import OPTIMISERS
from transect.training.workloads import Parameters


def _framework(cell: FederateCell) -> str:
    return cell.framework or "numpy"


def _training(cell: FederateCell) -> TrainCell:
    """Return the training that a client's turn is."""
    return TrainCell(
        workload=cell.workload,
        framework=_framework(cell),
        strategy="single",
        batch=cell.batch,
        threads=cell.threads,
        precision=cell.precision,
        device=cell.device,
    )


class _Loop(Session):
    def __init__(self, task: Task) -> None:
        cell = task.cell
        plan = ModelPlan(
            model=task.model,
            parameters=task.parameters,
            weights=task.weights,
            batch=cell.batch,
            precision=cell.precision,
            device=cell.device,
            threads=cell.threads,
        )
        trainer = FRAMEWORKS.get(_framework(cell)).trainer(plan)
        if not isinstance(trainer, ResumableTrainer):
            raise BadInput(
                f"the engine loop begins each turn anew, and {type(trainer).__name__} of {_framework(cell)} cannot go on "
                "from a given state: it has no `resume`"
            )
        self._task, self._trainer = task, trainer
        self._dtype = np.dtype(find_precision(cell.precision).array)
        rest = {
            weight.name: np.zeros(weight.shape, self._dtype) for weight in task.model.weight_shapes() if weight.trained
        }
        self._states = (rest,) * OPTIMISERS.get(task.parameters.optimiser).states

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turned]:
        size = sum(array.size for array in self._task.weights.values())
        for piece, turned in pieces(turns, size, self._dtype):
            for number, turn in enumerate(piece):
                turned.losses[number] = self._train(turn)
                turned.weights[number] = flat_of(self._task.model, self._trainer.weights())
            yield turned

    def _train(self, turn: Turn) -> float:
        task, trainer = self._task, self._trainer
        assert isinstance(trainer, Trainer)
        weights = arrays_of(task.model, turn.given)
        trainer.resume(TrainingState(weights=weights, states=self._states, updates=0))
        rate, total = task.parameters.learning_rate, 0.0
        for rows, seed in zip(turn.rows, turn.seeds, strict=True):
            trainer.seed(int(seed))
            x, y = trainer.batch(task.x[rows], task.y[rows])
            if isinstance(trainer, FusedTrainer):
                total += trainer.step(x, y, rate)
            else:
                total += trainer.forward_backward(x, y)
                trainer.update(rate)
        return total / len(turn.rows)


@ENGINES.register("loop")
class Loop(Engine):
    """Each client's steps by the trainer that a training of the framework has; without a framework by numpy's."""

    def supports(self, cell: FederateCell) -> str | None:
        name = _framework(cell)
        if isinstance(FRAMEWORKS.get(name), ProgramFramework):
            return f"{name} trains in a program of its own, which has no way to begin a client's turn"
        return FRAMEWORKS.get(name).supports(_training(cell))

    def builds(self, cell: FederateCell, model: Model, parameters: Parameters) -> str | None:
        # By its name: who refuses a cell is no part of what a cell computes.
        reason: str | None = import_module("transect.training.support").reason_to_skip(_training(cell), parameters)
        return reason

    @contextmanager
    def session(self, task: Task) -> Iterator[Session]:
        yield _Loop(task)

    def libraries(self, cell: FederateCell) -> dict[str, str]:
        return super().libraries(cell) | FRAMEWORKS.get(_framework(cell)).libraries()
