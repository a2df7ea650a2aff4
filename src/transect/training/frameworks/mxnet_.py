"""Apache MXNet, archived upstream since 2023: Gluon, hybridized, with autograd and gluon.Trainer."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, runs_on
from transect.training.frameworks._mxnet_model import LOSSES
from transect.training.frameworks._mxnet_trainer import MxnetTrainer
from transect.training.layers import LayerNorm
from transect.training.parts import PartByTrainer


class _MxnetPart(PartByTrainer):
    """Gradients of micro-batches add up in Gluon's own place.

    MXNet tells the statistics of a batch norm in its backward pass. They join the running ones in
    the update, in the order of the forward passes.
    """

    trainer: MxnetTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart) -> None:
        super().__init__(plan, part, lambda part_plan: MxnetTrainer(part_plan, adds=True))
        # Of the step's micro-batches: their sizes, in the order of forward passes, and statistics.
        self._sizes: dict[int, int] = {}
        self._statistics: dict[int, np.ndarray] = {}

    def begin_step(self) -> None:
        self.trainer.clear_gradient()
        for kept in (self.tapes, self._sizes, self._statistics):
            kept.clear()

    def _pass(self, i: int, x: Any, y: tuple[Any, ...], weight: float) -> np.ndarray:
        trainer = self.trainer
        if not self.part.begins:
            x = trainer.tensor(x)
            x.attach_grad()
        end = trainer.recorded(x, *y)
        self.tapes[i] = x, end, weight
        self._sizes[i] = len(x)
        array: np.ndarray = end.asnumpy()
        return array

    def forward(self, i: int, x: Any) -> np.ndarray:
        return self._pass(i, x, (), 1.0)

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        return float(self._pass(i, x, (y,), weight)[0])

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        trainer, first = self.trainer, self.part.begins
        x, end, weight = self.tapes.pop(i)
        # Layers without weights at the model's beginning leave nothing to compute.
        if trainer.trained or not first:
            # Else MXNet forgets of the statistics' arrays that other micro-batches were computed with them.
            end.backward(trainer.tensor(np.array([weight]) if g is None else g), retain_graph=True)
        trainer.finish_step()
        self._statistics[i] = trainer.statistics.last()
        inner: np.ndarray | None = None if first else x.grad.asnumpy()
        return inner

    def update(self, learning_rate: float) -> None:
        """Let the trainer do it; take in the statistics."""
        for i, size in self._sizes.items():
            if i in self._statistics:
                self.trainer.statistics.take(size, self._statistics[i])
        self._statistics.clear()
        self.trainer.update(learning_rate)


@FRAMEWORKS.register("mxnet")
class MxnetFramework(PartFramework):
    """MXNet on a CPU, with oneDNN for float32: its last wheels have no GPU code for today's CUDA."""

    environment = "mxnet"
    optimisers = ("sgd", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "lamb")
    losses = LOSSES
    follows = ("decay", "label_smoothing", "clip_norm", "accumulation", "ema")
    lacks = (LayerNorm,)

    def supports(self, cell: TrainCell) -> str | None:
        return runs_on(cell, "mxnet")

    def trainer(self, plan: ModelPlan) -> MxnetTrainer:
        return MxnetTrainer(plan)

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> _MxnetPart:
        return _MxnetPart(plan, part)

    def libraries(self) -> dict[str, str]:
        import mxnet as mx

        on = mx.runtime.Features().is_enabled("MKLDNN")
        return {"mxnet": mx.__version__, "onednn": "on" if on else "off"}
