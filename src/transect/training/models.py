"""What a model is to the pipeline, whoever computes it. A list of layers is one (`layered`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np

from transect.training.layers import Shape, Weight

if TYPE_CHECKING:
    import torch

    from transect.training.workloads import Parameters

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCosts:
    """`parameters`: trained numbers. All else is of one sample: the operations that training on it
    cannot do without (forward pass, loss, backward pass; `operations` says what counts as one), numbers
    that the forward pass writes, numbers of its input and of its output. Of a forward pass in
    prediction: its operations for one sample, and the numbers of weights that any batch has to read.
    """

    parameters: int
    training_flops: int
    prediction_flops: int
    prediction_weights: int
    activations: int
    inputs: int
    outputs: int


class Computation(Protocol):
    """A model in numpy, bound to arrays of weights and gradients that it reads and writes in place."""

    def loss(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the mean loss over the batch; write the gradient of every trained weight."""

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, ...), as in prediction."""


@runtime_checkable
class Drawing(Protocol):
    """A computation whose forward pass draws, such as dropout: from `seed`, where one is set, and then goes on."""

    seed: int | None


@runtime_checkable
class Updating(Protocol):
    """A computation that updates its weights by an optimiser of its own."""

    def update(self, learning_rate: float) -> None:
        """Change the weights by their gradients."""


class Model(Protocol):
    """Inputs, weights, loss, score, costs, and what the reference's tolerance follows from.

    `sample` is the shape of one input, without the batch's axis. `inputs`: "float" samples are
    rounded to the cell's precision, "int64" ones (tokens) stay what they are. `score` is the name
    of a registered metric, a mean over test samples; its direction says which way is better.
    """

    @property
    def sample(self) -> Shape:
        """Return the shape of one input."""

    @property
    def inputs(self) -> Literal["float", "int64"]:
        """Say what becomes of samples."""

    @property
    def score(self) -> str:
        """Name the metric of its outputs."""

    @property
    def parts_matter(self) -> bool:
        """Whether the path depends on how ranks cut a batch (batch norm), given the mean gradient."""

    def check_data(self, shape: Shape, y: np.ndarray, classes: tuple[str, ...]) -> None:
        """Raise BadInput when samples of this shape with targets (n, ...) do not fit.

        `classes` are the names of class numbers; empty when targets are something else.
        """

    def weight_shapes(self) -> list[Weight]:
        """Return all arrays, in the order in which the flat gradient holds the trained ones."""

    def initial_weights(self, seed: int) -> Arrays:
        """Draw float64 arrays for all frameworks."""

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return a random input of shape `sample` and its target, for twins without data."""

    def costs(self, parameters: Parameters) -> ModelCosts:
        """Count what one sample asks for: no more, or the report's bounds are none."""

    def longest_sum(self, batch: int) -> int:
        """Return the number of terms of the longest sum in a forward or backward pass.

        The reference perturbs what is computed with by u sqrt(K), K this number.
        """

    def computation(self, parameters: Parameters, weights: Arrays, gradients: Arrays) -> Computation:
        """Bind the model to its arrays, which share a dtype; the reference's is float64."""

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Return the sum of the samples' scores."""


@runtime_checkable
class TorchModel(Protocol):
    """A model that torch can build: it is trained by torch, exported, and its step made portable.

    `axes` are axes of a batch, besides the first one, that may be shorter than in `sample`: by the
    axis's number a name and the largest size.
    """

    @property
    def axes(self) -> Mapping[int, tuple[str, int]]:
        """Return them; most models have none."""

    def torch_module(self) -> torch.nn.Module:
        """Return a module from batches to what `Computation.outputs` gives, as the loss takes it.

        Its parameters bear the names of `weight_shapes` and have their shapes; one that is not
        trained requires no gradient. Its weights are to be loaded.
        """


def no_module(model: Model) -> str | None:
    """Return why torch cannot build the model, or None."""
    if isinstance(model, TorchModel):
        return None
    return f"{called(model)} gives no module of torch"


def called(model: Model) -> str:
    """Return what messages call a model: its own `what`, or its class."""
    return getattr(model, "what", f"a {type(model).__name__}")
