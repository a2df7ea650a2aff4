"""Gradients of several micro-batches that add up to one update, whatever framework computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.layout import Layout
from transect.training.trainers import ResumableTrainer, Trainer, TrainingState


class _Accumulating(Trainer):
    """A trainer whose forward and backward pass takes a rank's batch in parts; all else is the trainer's own.

    Activations are those of one part. Gradients add up in an array on the CPU.
    """

    def __init__(self, trainer: Trainer, parts: int) -> None:
        self.trainer, self._cuts = trainer, Layout(1, 1, parts)

    def forward_backward(self, x: Any, y: Any) -> float:
        """Return the mean loss over the batch, and leave the mean's gradient."""
        loss, total = 0.0, np.empty(0)
        for number, part in enumerate(self._cuts.micro(len(y))):
            share = (part.stop - part.start) / len(y)
            loss += share * self.trainer.forward_backward(x[part], y[part])
            flat = self.trainer.gradient()
            total = share * flat if number == 0 else total + share * flat
        self.trainer.set_gradient(total)
        return loss

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        return self.trainer.batch(x, y)

    def seed(self, seed: int) -> None:
        self.trainer.seed(seed)

    def gradient(self) -> np.ndarray:
        return self.trainer.gradient()

    def set_gradient(self, flat: np.ndarray) -> None:
        self.trainer.set_gradient(flat)

    def update(self, learning_rate: float) -> None:
        self.trainer.update(learning_rate)

    def average(self) -> None:
        self.trainer.average()

    def exchange_averages(self) -> None:
        self.trainer.exchange_averages()

    def finish_step(self) -> None:
        self.trainer.finish_step()

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.trainer.predict(x)

    def weights(self) -> dict[str, np.ndarray]:
        return self.trainer.weights()

    def load(self, weights: dict[str, np.ndarray]) -> None:
        self.trainer.load(weights)

    def memory(self) -> dict[str, Any]:
        return self.trainer.memory()

    def peak_before(self) -> int:
        return self.trainer.peak_before()


class _ResumableAccumulating(_Accumulating, ResumableTrainer):
    def resume(self, state: TrainingState) -> None:
        assert isinstance(self.trainer, ResumableTrainer)
        self.trainer.resume(state)


def accumulating(trainer: Trainer, parts: int) -> Trainer:
    """Return a trainer that takes each batch of a rank in `parts` micro-batches; the trainer itself with one part, or where it does."""
    if parts == 1 or trainer.accumulates:
        return trainer
    kind = _ResumableAccumulating if isinstance(trainer, ResumableTrainer) else _Accumulating
    return kind(trainer, parts)
