"""The transformer encoder as a workload's model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from transect.domain.errors import BadInput
from transect.training.layers import Shape, Weight
from transect.training.models import Arrays, Computation, ModelCosts
from transect.training.text_encoder import EncoderConfig, encoder_weights, initial_weights

if TYPE_CHECKING:
    import torch

    from transect.training.workloads import Parameters


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Texts as word numbers (length,), 0 padding and 1 unknown; logits, one for each class.

    Nothing is drawn in training, so that every framework follows one path.
    """

    config: EncoderConfig

    inputs: ClassVar[Literal["float", "int64"]] = "int64"
    score: ClassVar[str] = "accuracy"
    what: ClassVar[str] = "a transformer"
    parts_matter: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.config.dropout:
            raise BadInput("a workload's encoder has no dropout: no two frameworks draw the same")

    @property
    def sample(self) -> Shape:
        """As many words as a text may have."""
        return (self.config.length,)

    @property
    def axes(self) -> Mapping[int, tuple[str, int]]:
        """Texts may be shorter, unless their places stand side by side."""
        return {1: ("length", self.config.length)} if self.config.pooling == "mean" else {}

    def check_data(self, shape: Shape, y: np.ndarray, classes: tuple[str, ...]) -> None:
        """Raise BadInput unless length and number of classes are the model's."""
        if shape != self.sample:
            raise BadInput(f"samples have shape {shape}, the model takes {self.sample}")
        if self.config.classes != len(classes):
            raise BadInput(f"the model ends in {self.config.classes} outputs for {len(classes)} classes")

    def weight_shapes(self) -> list[Weight]:
        """Return all arrays, in the order in which the model computes."""
        return encoder_weights(self.config)

    def initial_weights(self, seed: int) -> Arrays:
        """Draw them as `text_encoder.initial_weights` says."""
        return initial_weights(self.config, seed)

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return a text of any words and any length but 0, and a class."""
        x = np.zeros(self.config.length, np.int64)
        words = generator.integers(1, self.config.length + 1)
        x[:words] = generator.integers(min(1, self.config.vocabulary - 1), self.config.vocabulary, words)
        return x, np.asarray(generator.integers(self.config.classes), np.int64)

    def costs(self, parameters: Parameters) -> ModelCosts:
        """Count over all places, as `_encoder_costs` says."""
        config = self.config
        # By its name: `costs` imports it, and what asks for nothing but shapes does not run again when
        # the way to count is edited.
        count = import_module("transect.training._encoder_costs")
        prediction, training = count.encoder_operations(config, parameters.loss)
        numbers, scores = config.length * config.width, config.heads * config.length**2
        # Written: looked up, projected, scores and shares, attended, added, normalised, inner twice …
        of_layer = numbers * (3 + 1 + 1 + 2 + 1 + 2) + 2 * scores + 2 * config.length * config.ffn
        shapes = [weight.shape for weight in self.weight_shapes() if weight.trained]
        table = config.vocabulary * config.width
        read = sum(prod(weight.shape) for weight in self.weight_shapes()) - table + config.width
        return ModelCosts(
            parameters=sum(map(prod, shapes)),
            training_flops=training,
            prediction_flops=prediction,
            prediction_weights=read,
            activations=numbers + config.layers * of_layer + config.pooled + config.classes,
            inputs=config.length,
            outputs=config.classes,
        )

    def longest_sum(self, batch: int) -> int:
        """Sums over the places of a text are not counted with those over the batch, as of images."""
        config = self.config
        return max(batch, 3 * config.width, config.ffn, config.length, config.pooled)

    def computation(self, parameters: Parameters, weights: Arrays, gradients: Arrays) -> Computation:
        """Bind numpy's encoder to the arrays."""
        from transect.training.frameworks._numpy_encoder import EncoderComputation

        return EncoderComputation(self.config, parameters, weights, gradients)

    def torch_module(self) -> torch.nn.Module:
        """Make torch's encoder, whose weights are to be loaded."""
        from transect.training.frameworks._torch_encoder import make_encoder

        return make_encoder(self.config)

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Count the texts whose largest output is that of their class."""
        return float((outputs.argmax(axis=1) == y).sum())
