"""The framework written from scratch: forward, backward and update in numpy."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, TellsKept, runs_on
from transect.training.frameworks._numpy_chain import LayeredComputation
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.losses import LOSSES
from transect.training.models import Model
from transect.training.module_model import ModuleModel
from transect.training.optimisers import OPTIMISERS
from transect.training.parts import PartByTrainer


class _NumpyPart(PartByTrainer, TellsKept):
    """The trainer's flat buffer holds one micro-batch's gradient, the part's own their sum.

    The tape of one under way holds how to go back, and the gradient to go back with at the end.
    """

    trainer: NumpyTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart) -> None:
        super().__init__(plan, part, NumpyTrainer)
        computation = self.trainer.computation
        assert isinstance(computation, LayeredComputation)
        self._computation = computation
        self._rule, self._loss = plan.parameters, LOSSES.get(plan.parameters.loss)
        self._total = np.zeros_like(self.trainer.flat_gradient)
        self._fresh = True

    def begin_step(self) -> None:
        super().begin_step()
        self._fresh = True

    def forward(self, i: int, x: Any) -> np.ndarray:
        outputs, back = self._computation.forward(x)
        self.tapes[i] = back, None
        return np.ascontiguousarray(outputs)

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        outputs, back = self._computation.forward(x)
        loss, gradient = self._loss.value_and_gradient(self._rule, outputs, y)
        self.tapes[i] = back, weight * gradient
        return loss

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        back, loss_gradient = self.tapes.pop(i)
        inner = back(loss_gradient if g is None else g, not self.part.begins)[0]
        if self._fresh:
            self._total[...] = self.trainer.flat_gradient
        else:
            self._total += self.trainer.flat_gradient
        self._fresh = False
        return None if self.part.begins or inner is None else np.ascontiguousarray(inner)

    def kept(self, i: int) -> dict[int, int]:
        """Return address and bytes of each array that the way back holds besides weights."""
        buffers = (self.trainer.flat_weights, self.trainer.flat_gradient)
        return kept_arrays(self.tapes[i][0], buffers)

    def gradient(self) -> np.ndarray:
        return self._total

    def set_gradient(self, flat: np.ndarray) -> None:
        if flat is not self._total:
            self._total[...] = flat

    def update(self, learning_rate: float) -> None:
        self.trainer.set_gradient(self._total)
        self.trainer.update(learning_rate)


def _owner(array: np.ndarray) -> np.ndarray:
    """Return the array whose memory a view shows; windows over an array stand on an object of their own."""
    found: Any = array
    owner = array
    while found is not None:
        if isinstance(found, np.ndarray):
            owner = found
        found = getattr(found, "base", None)
    return owner


def _address(array: np.ndarray) -> int:
    return int(_owner(array).__array_interface__["data"][0])


def kept_arrays(back: Any, weights: Iterable[np.ndarray]) -> dict[int, int]:
    """Return address and bytes of each array that a function and those that it calls hold.

    Those of `weights` are left out: they are there anyway.
    """
    weight_addresses = {_address(array) for array in weights}
    found: dict[int, int] = {}
    todo: list[Any] = [back]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            if value.nbytes and _address(value) not in weight_addresses:
                found[_address(value)] = _owner(value).nbytes
        elif isinstance(value, FunctionType):
            todo += [cell.cell_contents for cell in value.__closure__ or ()]
        elif isinstance(value, list | tuple):
            todo += value
    return found


@FRAMEWORKS.register("numpy", "np")
class NumpyFramework(PartFramework):
    """Reference and baseline; float64 gives the trajectory that all others must follow."""

    environment = "base"
    follows: tuple[str, ...] = ("decay", "label_smoothing", "clip_norm", "accumulation", "ema")

    @property
    def optimisers(self) -> tuple[str, ...]:
        """Return all: it takes any rule from the rule's own file."""
        return tuple(OPTIMISERS)

    @property
    def losses(self) -> tuple[str, ...]:
        """Return all, for the same reason."""
        return tuple(LOSSES)

    def supports(self, cell: TrainCell) -> str | None:
        return runs_on(cell, "numpy")

    def builds(self, model: Model) -> str | None:
        """Any model that says in numpy what it computes."""
        return "it has no autograd for a module of torch" if isinstance(model, ModuleModel) else None

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        return NumpyTrainer(plan)

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> _NumpyPart:
        return _NumpyPart(plan, part)

    def libraries(self) -> dict[str, str]:
        config = np.show_config(mode="dicts")
        blas = config["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, "blas": f"{blas['name']} {blas['version']}"}
