"""Parts of a model of layers: each as a model of its own, under the whole model's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, TypeVar

import numpy as np

from transect.training.frameworks import ModelPart, ModelPlan, PartTrainer, ResumableTrainer, Trainer, TrainingState
from transect.training.layered import LayeredModel
from transect.training.layers import Layer, Shape, Weight, shapes, weight_shapes
from transect.training.models import Model, called

Value = TypeVar("Value")


def no_parts(model: Model) -> str | None:
    """Return why a model cannot be cut between its layers, or None."""
    if isinstance(model, LayeredModel):
        return None
    return f"it cuts lists of layers, and {called(model)} is not one"


def layers_of(model: Model) -> tuple[Layer, ...]:
    """Return the layers between which a model can be cut. Raises TypeError for no list of layers."""
    return _layered(model).layers


def layer_count(model: Model) -> int:
    """Return how many they are. Raises TypeError for no list of layers."""
    return len(layers_of(model))


def boundary_shapes(model: Model) -> list[Shape]:
    """Return the shape of one sample before the first layer and after each one."""
    layered = _layered(model)
    return shapes(layered.layers, layered.sample)


def trained_sizes(model: Model) -> list[int]:
    """Return how many trained numbers each layer has."""
    return [sum(prod(array.shape) for array in weight_shapes((layer,)) if array.trained) for layer in layers_of(model)]


def parts_of(model: Model, cuts: tuple[int, ...]) -> list[ModelPart]:
    """Return the parts that begin at layer 0 and at each cut."""
    count = layer_count(model)
    ends = (0, *cuts, count)
    return [ModelPart(a, b, count) for a, b in pairwise(ends)]


def pieces_of(model: Model, part: ModelPart, least: int) -> list[ModelPart]:
    """Cut a part into pieces of at least so many trained numbers each, or its one piece with fewer.

    They are cut from the end, in the order in which gradients become complete.
    """
    sizes = trained_sizes(model)
    cuts, room = [part.last], 0
    for layer in range(part.last - 1, part.first, -1):
        room += sizes[layer]
        left = sum(sizes[part.first : layer])
        if room >= least and left >= least:
            cuts.append(layer)
            room = 0
    ends = [part.first, *reversed(cuts)]
    return [ModelPart(a, b, part.count) for a, b in pairwise(ends)]


def part_weights(model: Model, part: ModelPart) -> list[Weight]:
    """Return the part's arrays, in the order of the model's and by its names."""
    return [weight for weight in model.weight_shapes() if part.first <= _layer_of(weight.name) < part.last]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartPlan:
    """A part as a model of its own, whose layer 0 is the layer `part.first` of the whole."""

    part: ModelPart
    plan: ModelPlan

    def pick(self, arrays: Mapping[str, Value]) -> dict[str, Value]:
        """Pick those of the part, under the names that they have in it."""
        first, last = self.part.first, self.part.last
        return {_moved(name, -first): array for name, array in arrays.items() if first <= _layer_of(name) < last}

    def whole(self, arrays: Mapping[str, Value]) -> dict[str, Value]:
        """Give arrays of the part the whole model's names."""
        return {_moved(name, self.part.first): array for name, array in arrays.items()}


def part_plan(plan: ModelPlan, part: ModelPart) -> PartPlan:
    """Cut a part out of a plan. Raises TypeError for no list of layers, ValueError where all gradients are clipped."""
    if plan.parameters.clip_norm is not None:
        raise ValueError("a part of a model knows the norm of its own gradients, not of all: clip_norm is not for it")
    model = _layered(plan.model)
    layers = model.layers[part.first : part.last]
    part_model = LayeredModel(layers, boundary_shapes(model)[part.first])
    cut = PartPlan(part=part, plan=plan)
    return replace(cut, plan=replace(plan, model=part_model, weights=cut.pick(plan.weights)))


class PartByTrainer(PartTrainer):
    """A part whose weights, gradients and updates are those of a trainer of it as a model of its own.

    A framework adds the passes. `begin_step` must also set gradients to zero, and `trainer.gradient()` must give what they add up.
    """

    trainer: Trainer

    def __init__(self, plan: ModelPlan, part: ModelPart, build: Callable[[ModelPlan], Any]) -> None:
        self._cut = part_plan(plan, part)
        self.part = part
        self.trainer = build(self._cut.plan)
        # Of each micro-batch under way, what its way back needs.
        self.tapes: dict[int, Any] = {}

    def begin_step(self) -> None:
        self.tapes.clear()

    def native(self, x: Any) -> Any:
        """Return inputs as the framework takes them: those of `batch` are, a neighbour's are not."""
        return x if self.part.begins else self.trainer.batch(x, np.empty(0, np.int64))[0]

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Bring it to device and precision; what the part does not read stays as it is."""
        if not self.part.begins:
            return x, self.trainer.batch(x[:0], y)[1]
        return self.trainer.batch(x, y)

    def gradient(self) -> np.ndarray:
        return self.trainer.gradient()

    def set_gradient(self, flat: np.ndarray) -> None:
        self.trainer.set_gradient(flat)

    def update(self, learning_rate: float) -> None:
        self.trainer.update(learning_rate)

    def finish_step(self) -> None:
        self.trainer.finish_step()

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.trainer.predict(x))

    def weights(self) -> dict[str, np.ndarray]:
        return self._cut.whole(self.trainer.weights())

    def load(self, weights: dict[str, np.ndarray]) -> None:
        self.trainer.load(self._cut.pick(weights))

    def resume(self, state: TrainingState) -> None:
        assert isinstance(self.trainer, ResumableTrainer)
        states = tuple(self._cut.pick(arrays) for arrays in state.states)
        part_state = TrainingState(weights=self._cut.pick(state.weights), states=states, updates=state.updates)
        self.trainer.resume(part_state)


def _layered(model: Model) -> LayeredModel:
    if not isinstance(model, LayeredModel):
        raise TypeError(f"{type(model).__name__} is not a list of layers")
    return model


def _layer_of(name: str) -> int:
    return int(name.partition(".")[0])


def _moved(name: str, by: int) -> str:
    layer, _, suffix = name.partition(".")
    return f"{int(layer) + by}.{suffix}"
