"""A part of a model in numpy: forwards and backwards apart, gradients added up over micro-batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks import ModelPart, ModelPlan, TellsKept
from transect.training.frameworks._numpy_chain import LayeredComputation
from transect.training.frameworks._numpy_kept import kept_arrays
from transect.training.frameworks._numpy_layers import loss_and_gradient
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.parts import PartByTrainer


class NumpyPart(PartByTrainer, TellsKept):
    """The trainer's flat buffer holds one micro-batch's gradient, the part's own their sum.

    The tape of one under way holds how to go back, and the gradient to go back with at the end.
    """

    trainer: NumpyTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart) -> None:
        super().__init__(plan, part, NumpyTrainer)
        computation = self.trainer.computation
        assert isinstance(computation, LayeredComputation)
        self._computation = computation
        self._loss = plan.parameters.loss
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
        loss, gradient = loss_and_gradient(self._loss, outputs, y)
        self.tapes[i] = back, weight * gradient
        return loss

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        back, own = self.tapes.pop(i)
        given = own if g is None else g
        if given is None:
            raise ValueError("a part that does not end the model goes back with a gradient")
        inner = back(given, not self.part.begins)[0]
        if self._fresh:
            self._total[...] = self.trainer.flat_gradient
        else:
            self._total += self.trainer.flat_gradient
        self._fresh = False
        return None if self.part.begins or inner is None else np.ascontiguousarray(inner)

    def kept(self, i: int) -> dict[int, int]:
        """Return address and bytes of each array that the way back holds besides weights."""
        own = (self.trainer.flat_weights, self.trainer.flat_gradient)
        return kept_arrays(self.tapes[i][0], own)

    def gradient(self) -> np.ndarray:
        return self._total

    def set_gradient(self, flat: np.ndarray) -> None:
        """Copy, unless `flat` is the buffer itself."""
        if flat is not self._total:
            self._total[...] = flat

    def update(self, learning_rate: float) -> None:
        self.trainer.set_gradient(self._total)
        self.trainer.update(learning_rate)
