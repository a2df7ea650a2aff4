"""A model as parts of one layer's weights each: one part's communication overlaps other parts' computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, ProgramFramework, Trainer
from transect.training.models import Model
from transect.training.part_chain import PartList
from transect.training.parts import no_parts, parts_of, trained_sizes
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
    cuts, held = [], 0
    for layer, size in enumerate(trained_sizes(model)):
        if size and held >= max(1, least_bytes):
            cuts.append(layer)
            held = 0
        held += size * itemsize
    return parts_of(model, tuple(cuts))


class LayerwiseTrainer(PartList, Trainer):
    """Parts one after another, each with its own optimiser; a step is one micro-batch.

    `before` is called with a part's number before its forward pass, `after` after its backward pass:
    the last part's comes first.
    """

    def __init__(self, framework: PartFramework, plan: ModelPlan, parts: list[ModelPart]) -> None:
        super().__init__([framework.part_trainer(plan, part) for part in parts])

    def forward_backward(self, x: object, y: object) -> float:
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
