"""One client after another, by a framework's own trainer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module

import numpy as np

from transect.domain.axes.federate import FederateCell
from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.domain.precisions import find_precision
from transect.federated.engines import ENGINES, Engine, Session, Task, Turn, Turned
from transect.federated.engines._pieces import pieces
from transect.federated.flat import arrays_of, flat_of, trained_part
from transect.federated.methods import METHODS
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

# Whole numbers below it have a number of their own in every gradient, and its square is more than any model has.
_DIGIT = 2**16


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


def _trainer(task: Task) -> Trainer:
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
    return FRAMEWORKS.get(_framework(cell)).trainer(plan)


class _Loop(Session):
    def __init__(self, task: Task) -> None:
        cell, trainer = task.cell, _trainer(task)
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
        # Of turns that add to gradients: which number of the trained vector each number of a trainer's gradient is of.
        self._order: np.ndarray | None = None
        self._is_trained = trained_part(task.model)

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
        extended = turn.extended
        if extended and self._order is None:
            self._order = _gradient_order(task, turn)
        for rows, seed in zip(turn.rows, turn.seeds, strict=True):
            trainer.seed(int(seed))
            x, y = trainer.batch(task.x[rows], task.y[rows])
            if extended:
                total += trainer.forward_backward(x, y)
                self._add(turn)
                trainer.update(rate)
            elif isinstance(trainer, FusedTrainer):
                total += trainer.step(x, y, rate)
            else:
                total += trainer.forward_backward(x, y)
                trainer.update(rate)
        return total / len(turn.rows)

    def _add(self, turn: Turn) -> None:
        trainer, part = self._trainer, self._is_trained
        weights = flat_of(self._task.model, trainer.weights())[part].astype(self._dtype, copy=False)
        gradient = trainer.gradient()
        gradient += turn.added(weights, part)[self._order]
        trainer.set_gradient(gradient)


def _gradient_order(task: Task, turn: Turn) -> np.ndarray:
    """Return which number of the model's trained numbers each number of a trainer's flat gradient is of, int64.

    Frameworks have orders and layouts of their own. Asked is one: plain SGD at rate 1 takes the gradient 0, 1, 2, ... from
    zeros, and the neutral layout tells where each number has gone. Raises BadInput where that is no order.
    """
    model, part = task.model, trained_part(task.model)
    zeros = {name: np.zeros_like(array) for name, array in task.weights.items()}
    plain = {"optimiser": "sgd", "momentum": 0.0, "weight_decay": 0.0, "clip_norm": None, "learning_rate": 1.0}
    trainer = _trainer(replace(task, parameters=task.parameters.model_copy(update=plain)))
    trainer.forward_backward(*trainer.batch(task.x[turn.rows[0]], task.y[turn.rows[0]]))
    trainer.load(zeros)
    gradient = trainer.gradient()
    # In two goes of numbers that any precision has.
    found = np.zeros(int(part.sum()), np.int64)
    for factor in (1, _DIGIT):
        trainer.load(zeros)
        gradient[...] = np.arange(len(gradient)) // factor % _DIGIT
        trainer.set_gradient(gradient)
        trainer.update(1.0)
        trainer.finish_step()
        found += factor * -np.rint(flat_of(model, trainer.weights())[part]).astype(np.int64)
    if not np.array_equal(np.sort(found), np.arange(len(gradient))):
        raise BadInput(
            f"nothing tells which weights the gradient of {type(trainer).__name__} of {_framework(task.cell)} is of: "
            "expected its numbers in some order, each once"
        )
    return np.argsort(found)


@ENGINES.register("loop")
class Loop(Engine):
    """Each client's steps by the trainer that a training of the framework has; without a framework by numpy's."""

    def supports(self, cell: FederateCell) -> str | None:
        name = _framework(cell)
        if isinstance(FRAMEWORKS.get(name), ProgramFramework):
            return f"{name} trains in a program of its own, which has no way to begin a client's turn"
        return FRAMEWORKS.get(name).supports(_training(cell))

    def builds(self, cell: FederateCell, model: Model, parameters: Parameters) -> str | None:
        method = METHODS.get(cell.method)
        if (method.pulls or method.corrects) and cell.precision not in ("fp32", "fp64"):
            return f"steps of {cell.method} add to gradients in fp32 or fp64, not in {cell.precision}"
        # By its name: who refuses a cell is no part of what a cell computes.
        reason: str | None = import_module("transect.training.support").reason_to_skip(_training(cell), parameters)
        return reason

    @contextmanager
    def session(self, task: Task) -> Iterator[Session]:
        yield _Loop(task)

    def libraries(self, cell: FederateCell) -> dict[str, str]:
        return super().libraries(cell) | FRAMEWORKS.get(_framework(cell)).libraries()
