"""A model as parts of one layer's weights each, so that messages of one go on beside passes of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import (
    FRAMEWORKS,
    ModelPart,
    ModelPlan,
    PartFramework,
    PartTrainer,
    ProgramFramework,
    ResumableTrainer,
    Trainer,
    TrainingState,
)
from transect.training.models import Model
from transect.training.parts import layer_count, no_parts, part_weights, parts_of
from transect.training.workloads import WORKLOADS, model_of


def no_layers(cell: TrainCell) -> str | None:
    """Return why framework or model of a cell cannot be taken layer by layer, or None.

    A program of its own that implements the strategy needs no part of a trainer in Python.
    """
    framework = FRAMEWORKS.get(cell.framework)
    by_itself = isinstance(framework, ProgramFramework) and cell.strategy in (framework.program_strategies or ())
    if not by_itself and not isinstance(framework, PartFramework):
        return f"{cell.framework} cannot train a part of a model"
    return no_parts(model_of(WORKLOADS.get(cell.workload)))


def weighty_parts(model: Model, least_bytes: int, itemsize: int) -> list[ModelPart]:
    """Cut a model before layers with trained weights, so that every part but the last has enough.

    `least_bytes`: trained weights of a part, `itemsize` bytes each; at least one weight. Layers
    without weights stay with what is before them.
    """
    sizes = [0] * layer_count(model)
    whole = ModelPart(0, len(sizes), len(sizes))
    for one in part_weights(model, whole):
        if one.trained:
            sizes[int(one.name.partition(".")[0])] += int(np.prod(one.shape)) * itemsize
    cuts, held = [], 0
    for layer, size in enumerate(sizes):
        if size and held >= max(1, least_bytes):
            cuts.append(layer)
            held = 0
        held += size
    return parts_of(model, tuple(cuts))


class LayerwiseTrainer(Trainer, ResumableTrainer):
    """Parts one after another, each with its own optimiser; a step is one micro-batch.

    `before` is called with a part's number before its forward pass, `after` after its backward pass:
    the last part's comes first.
    """

    def __init__(self, framework: PartFramework, plan: ModelPlan, parts: list[ModelPart]) -> None:
        self.parts: list[PartTrainer] = [framework.part_trainer(plan, part) for part in parts]

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Bring inputs to the first part, targets to the last."""
        if len(self.parts) == 1:
            return self.parts[0].batch(x, y)
        return self.parts[0].batch(x, y)[0], self.parts[-1].batch(x, y)[1]

    def forward_backward(self, x: object, y: object) -> float:
        """Compute the mean loss and leave the gradients in the parts."""
        return self.passes(x, y, lambda number: None, lambda number: None)

    def passes(self, x: object, y: object, before: Callable[[int], None], after: Callable[[int], None]) -> float:
        """Do the same and say where it stands."""
        last = len(self.parts) - 1
        for part in self.parts:
            part.begin_step()
        value: Any = x
        for number, part in enumerate(self.parts[:-1]):
            before(number)
            value = part.forward(0, value)
        before(last)
        loss = self.parts[last].loss(0, value, y, 1.0)
        g: np.ndarray | None = None
        for number in range(last, -1, -1):
            g = self.parts[number].backward(0, g)
            after(number)
        return loss

    def gradient(self) -> np.ndarray:
        """Return a copy of all parts' gradients, in the model's order."""
        return np.concatenate([part.gradient() for part in self.parts])

    def set_gradient(self, flat: np.ndarray) -> None:
        """Cut it into those of the parts."""
        start = 0
        for part in self.parts:
            size = part.gradient().size
            part.set_gradient(flat[start : start + size])
            start += size

    def update(self, learning_rate: float) -> None:
        """Update every part."""
        for part in self.parts:
            part.update(learning_rate)

    def finish_step(self) -> None:
        """Wait for the device."""
        for part in self.parts:
            part.finish_step()

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Hand the samples through all parts."""
        for part in self.parts:
            x = part.predict(x)
        return x

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies of all parts'."""
        return {name: array for part in self.parts for name, array in part.weights().items()}

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Let every part pick its own."""
        for part in self.parts:
            part.load(weights)

    def resume(self, state: TrainingState) -> None:
        """Let every part pick its own."""
        for part in self.parts:
            part.resume(state)
