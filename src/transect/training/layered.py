"""Models that are a list of layers, for inputs of one class each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from transect.domain.errors import BadInput
from transect.training.layers import (
    Branches,
    Conv2d,
    Flatten,
    Layer,
    LayerNorm,
    Linear,
    Shape,
    Weight,
    has_batch_norm,
    initial_weights,
    shapes,
    walk,
    weight_shapes,
)
from transect.training.losses import LOSSES
from transect.training.models import Computation, ModelCosts

if TYPE_CHECKING:
    import torch

    from transect.training.workloads import Parameters


@dataclass(frozen=True, slots=True)
class LayeredModel:
    """`layers` end in what `Parameters.loss` takes: logits or sigmoid outputs, one for each class."""

    layers: tuple[Layer, ...]
    sample: Shape

    inputs: ClassVar[Literal["float", "int64"]] = "float"
    score: ClassVar[str] = "accuracy"
    what: ClassVar[str] = "a list of layers"
    axes: ClassVar[Mapping[int, tuple[str, int]]] = {}

    @property
    def parts_matter(self) -> bool:
        """Batch norm normalises each part by its own statistics."""
        return has_batch_norm(self.layers)

    @property
    def output(self) -> Shape:
        """Return the shape of one sample's output."""
        return shapes(self.layers, self.sample)[-1]

    def check_data(self, shape: Shape, y: np.ndarray, classes: tuple[str, ...]) -> None:
        """Raise BadInput unless shape and number of classes are the model's."""
        if shape != self.sample:
            raise BadInput(f"samples have shape {shape}, the model takes {self.sample}")
        if self.output != (len(classes),):
            raise BadInput(f"the model ends in {self.output} outputs for {len(classes)} classes")

    def weight_shapes(self) -> list[Weight]:
        """Return all arrays, in the order in which the model computes."""
        return weight_shapes(self.layers)

    def initial_weights(self, seed: int) -> dict[str, np.ndarray]:
        """Draw them as `layers.initial_weights` says."""
        return initial_weights(self.layers, seed)

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return standard normal numbers and a class."""
        x = generator.standard_normal(self.sample)
        return x, np.asarray(generator.integers(self.output[0]), np.int64)

    def costs(self, parameters: Parameters) -> ModelCosts:
        """Count over all layers, as `operations` says, and the loss."""
        # By its name, as below.
        count = import_module("transect.training.operations")
        training: int = count.training_operations(self.layers, self.sample)
        loss = LOSSES.get(parameters.loss).operations(prod(self.output))
        written = (
            prod(placed.after)
            for placed in walk(self.layers, self.sample)
            # Branches can write where they are joined.
            if not isinstance(placed.layer, Flatten | Branches)
        )
        trained = sum(prod(w.shape) for w in weight_shapes(self.layers) if w.trained)
        return ModelCosts(
            parameters=trained,
            training_flops=training + loss,
            prediction_flops=count.prediction_operations(self.layers, self.sample),
            prediction_weights=trained,
            activations=sum(written),
            inputs=prod(self.sample),
            outputs=prod(self.output),
        )

    def longest_sum(self, batch: int) -> int:
        """Sums over the places of a convolution's or a batch norm's images are not counted.

        They run over independent samples of one another's size and are split by every library.
        """
        longest = batch
        for placed in walk(self.layers, self.sample):
            match placed.layer:
                case Linear(inputs, outputs):
                    longest = max(longest, inputs, outputs)
                case LayerNorm(features):
                    longest = max(longest, features)
                case Conv2d(inputs, outputs, kernel):
                    longest = max(longest, max(inputs, outputs) // placed.layer.groups * kernel * kernel)
        return longest

    def computation(
        self, parameters: Parameters, weights: dict[str, np.ndarray], gradients: dict[str, np.ndarray]
    ) -> Computation:
        """Bind numpy's layers to the arrays."""
        # By its name: `_numpy_trainer` imports it, and what only asks a model for its shapes does
        # not run again when the way to compute it is edited.
        chain = import_module("transect.training.frameworks._numpy_chain")
        bound: Computation = chain.LayeredComputation(self.layers, parameters, weights, gradients)
        return bound

    def torch_module(self) -> torch.nn.Module:
        """Chain torch's layers."""
        modules = import_module("transect.training.frameworks._torch_modules")
        module: torch.nn.Module = modules.build_module(self.layers)
        return module

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Count the samples whose largest output is that of their class."""
        return float((outputs.argmax(axis=1) == y).sum())
