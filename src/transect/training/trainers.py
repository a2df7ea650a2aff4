"""Trainers: what a framework builds, of a whole model or of a part of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.training.layered import LayeredModel
from transect.training.layers import Layer, Shape
from transect.training.models import Model
from transect.training.workloads import Parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelPlan:
    """All that a framework needs to build its trainer.

    `weights` maps the names of `model.weight_shapes()` to float64 arrays in the neutral layout;
    `batch` is this rank's part of a batch.
    """

    model: Model
    parameters: Parameters
    weights: dict[str, np.ndarray]
    batch: int
    precision: str
    device: str
    threads: int
    memory: str = "plain"
    memory_budget: int | None = None
    # Of `planned`: its `runs` of layers and the `window_bytes` of its store.
    memory_plan: dict[str, Any] | None = None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return the layers of a layered model. Raises TypeError for any other model."""
        if not isinstance(self.model, LayeredModel):
            raise TypeError(f"{type(self.model).__name__} is not a list of layers")
        return self.model.layers

    @property
    def sample(self) -> Shape:
        """Return the shape of one sample: of images CHW."""
        return self.model.sample


class BaseTrainer(ABC):
    """What trainers of whole models and of parts share: weights with their gradients and optimiser.

    The update rule is that of `parameters.optimiser`, the same everywhere, for all trained weights
    (`optimisers`). The loss is a mean over the batch.
    """

    @abstractmethod
    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Bring a batch, x (n, ...) and y (n, ...) int64, to device and precision."""

    def seed(self, seed: int) -> None:
        """Draw what the next batch's forward pass draws, such as dropout, from there; most models draw nothing."""

    @abstractmethod
    def gradient(self) -> np.ndarray:
        """Return the flat gradient, one contiguous buffer in a fixed order."""

    @abstractmethod
    def set_gradient(self, flat: np.ndarray) -> None:
        """Replace the gradients by those of the flat buffer."""

    @abstractmethod
    def update(self, learning_rate: float) -> None:
        """Apply the update rule to the weights."""

    def average(self) -> None:
        """Move the averages of the trained weights by `parameters.ema`; the first call makes them the weights.

        Raises TypeError where a trainer keeps none.
        """
        raise TypeError(f"{type(self).__name__} keeps no averages of its weights")

    def exchange_averages(self) -> None:
        """Put the averages where the trained weights are, and these where the averages were; only after `average`."""
        raise TypeError(f"{type(self).__name__} keeps no averages of its weights")

    def finish_step(self) -> None:
        """Wait until the device has done all that was asked: nothing to do on most CPUs."""

    @abstractmethod
    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, ...) as a numpy array, without gradients."""

    @abstractmethod
    def weights(self) -> dict[str, np.ndarray]:
        """Return copies of all weights, running statistics too, in the neutral layout."""

    @abstractmethod
    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Replace the weights by those given, in the neutral layout."""

    def memory(self) -> dict[str, Any]:
        """Return what a record should say of the memory of its steps: JSON."""
        return {}

    def peak_before(self) -> int:
        """Return the most resident memory so far, where its steps make the kernel count anew; else 0."""
        return 0


class Trainer(BaseTrainer):
    """One rank's model with its optimiser."""

    # Whether `forward_backward` itself takes a batch in `parameters.accumulation` micro-batches.
    accumulates: bool = False

    @abstractmethod
    def forward_backward(self, x: Any, y: Any) -> float:
        """Compute the mean loss and leave the gradients in the trainer."""


class FusedTrainer(Trainer):
    """A trainer that can also do forward, backward and update in one call of its framework.

    Used where nothing happens between backward and update.
    """

    @abstractmethod
    def step(self, x: Any, y: Any, learning_rate: float) -> float:
        """Do one step; return the mean loss before the update."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingState:
    """Where a training stands after `updates` updates, in the neutral layout.

    `weights` holds all arrays, running statistics too. `states` is what the optimiser keeps, as the
    rule in `optimisers` defines it: for each of its `states` an array like every trained weight.
    """

    weights: dict[str, np.ndarray]
    states: tuple[dict[str, np.ndarray], ...]
    updates: int


class ResumableTrainer(BaseTrainer):
    """A trainer that can go on from any state of the same training, as from a checkpoint.

    Used to hold it to the reference in the middle of the training. On several ranks all call it.
    """

    @abstractmethod
    def resume(self, state: TrainingState) -> None:
        """Replace weights, the optimiser's states and its number of updates by those given."""


@dataclass(frozen=True, slots=True)
class ModelPart:
    """The layers [first, last) of a model of `count` layers; a residual one counts as one."""

    first: int
    last: int
    count: int

    @property
    def begins(self) -> bool:
        """Whether it takes the model's input."""
        return self.first == 0

    @property
    def ends(self) -> bool:
        """Whether it gives the model's output, and so its loss."""
        return self.last == self.count


class PartTrainer(ResumableTrainer):
    """One part of a model with its optimiser. It works through a step micro-batch by micro-batch.

    Between parts stand numpy arrays of the plan's precision, (n, ...): outputs stay as they are until the
    `backward` of their micro-batch has returned, gradients until `finish_step`. Names of weights are the
    whole model's; `load` and `resume` ignore those of other parts. Slices of what `batch` gives are micro-batches.
    `set_gradient` must not ask for `gradient`, which may write the buffer that it was given. A step is `begin_step`, then
    for each micro-batch `forward` or `loss`, later its `backward`, in any order that its results allow, then `update`.
    """

    # The layers that it holds.
    part: ModelPart

    @abstractmethod
    def begin_step(self) -> None:
        """Set gradients to zero, forget micro-batches whose `backward` never came."""

    @abstractmethod
    def forward(self, i: int, x: Any) -> np.ndarray:
        """Return the part's outputs of micro-batch i, and keep what `backward` will need.

        `x` is native, of `batch`, where the part begins the model, else what its neighbour gave.
        Running statistics of batch norms follow the order of calls.
        """

    @abstractmethod
    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        """Do `forward` where the part ends the model; return the micro-batch's mean loss.

        `backward` will be that of `weight` times it, the micro-batch's share of the replica's batch.
        """

    @abstractmethod
    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        """Add the micro-batch's gradients to the part's; forget the micro-batch.

        `g` is the gradient of its outputs, None where the part ends the model. Returns that of
        its inputs, None where the part begins it.
        """


class TellsKept(PartTrainer):
    """A part's trainer that reports the bytes it keeps between its passes, for profiles."""

    @abstractmethod
    def kept(self, i: int) -> dict[int, int]:
        """Return address and bytes of each buffer that micro-batch i's `backward` will need.

        Weights are left out. Parts in one process that keep the same buffer name the same address.
        """
