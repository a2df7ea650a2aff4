"""Frameworks: who computes gradients. One file each; its import stays inside the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Value
from transect.domain.registry import Registry
from transect.training.layered import LayeredModel
from transect.training.layers import Layer, Shape
from transect.training.models import Model
from transect.training.workloads import Parameters

__all__ = [
    "FRAMEWORKS",
    "Framework",
    "FusedTrainer",
    "ModelPart",
    "ModelPlan",
    "PartFramework",
    "PartTrainer",
    "RankFiles",
    "ResumableTrainer",
    "TellsKept",
    "Trainer",
    "TrainingState",
    "only_layers",
]


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
            raise TypeError(f"{type(self.model).__name__} is no list of layers")
        return self.model.layers

    @property
    def sample(self) -> Shape:
        """Return the shape of one sample: of images CHW."""
        return self.model.sample


class Trainer(Protocol):
    """One rank's model with its optimiser.

    The update rule is that of `parameters.optimiser`, the same everywhere, for all trained weights
    (`optimisers`). The loss is a mean over the batch.
    """

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[object, object]:
        """Bring a batch, x (n, ...) and y (n, ...) int64, to device and precision."""
        ...

    def forward_backward(self, x: object, y: object) -> float:
        """Compute the mean loss and leave the gradients in the trainer."""
        ...

    def gradient(self) -> np.ndarray:
        """Return the flat gradient, one contiguous buffer in a fixed order."""
        ...

    def set_gradient(self, flat: np.ndarray) -> None:
        """Replace the gradients by those of the flat buffer."""
        ...

    def update(self, learning_rate: float) -> None:
        """Apply the update rule to the weights."""
        ...

    def finish_step(self) -> None:
        """Wait until the device has done all that was asked (nothing to do on a CPU)."""
        ...

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, ...) as a numpy array, without gradients."""
        ...

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies of all weights, running statistics too, in the neutral layout."""
        ...

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Replace the weights by those given, in the neutral layout."""
        ...


@runtime_checkable
class FusedTrainer(Protocol):
    """A trainer that can also do forward, backward and update in one call of its framework.

    Used where nothing happens between backward and update.
    """

    def step(self, x: object, y: object, learning_rate: float) -> float:
        """Do one step; return the mean loss before the update."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingState:
    """Where a training stands after `updates` updates, in the neutral layout.

    `weights` holds all arrays, running statistics too. `states` is what the optimiser keeps, as the
    rule in `optimisers` defines it: for each of its `states` an array like every trained weight.
    """

    weights: dict[str, np.ndarray]
    states: tuple[dict[str, np.ndarray], ...]
    updates: int


@runtime_checkable
class ResumableTrainer(Protocol):
    """A trainer that can go on from any state of the same training, as from a checkpoint.

    Used to hold it to the reference in the middle of the training. On several ranks all call it.
    """

    def resume(self, state: TrainingState) -> None:
        """Replace weights, the optimiser's states and its number of updates by those given."""
        ...


@dataclass(frozen=True, slots=True)
class ModelPart:
    """The layers [first, last) of a model of `count` layers; a residual one counts as one."""

    first: int
    last: int
    count: int

    def __post_init__(self) -> None:
        """Raise ValueError unless it has a layer."""
        if not 0 <= self.first < self.last <= self.count:
            raise ValueError(f"no layers [{self.first}, {self.last}) among {self.count}")

    @property
    def begins(self) -> bool:
        """Whether it takes the model's input."""
        return self.first == 0

    @property
    def ends(self) -> bool:
        """Whether it gives the model's output, and so its loss."""
        return self.last == self.count


class PartTrainer(Protocol):
    """One part of a model with its optimiser. It works through a step micro-batch by micro-batch.

    Between parts stand numpy arrays of the plan's precision, (n, ...): outputs stay as they are until the
    `backward` of their micro-batch has returned, gradients until `finish_step`. Names of weights are the
    whole model's. `set_gradient` must not ask for `gradient`, which may write the buffer that it was given. A step is `begin_step`, then for each micro-batch `forward` or
    `loss`, later its `backward`, in any order that its results allow, then `update`.
    """

    part: ModelPart

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Bring a batch to device and precision; slices of what it gives are micro-batches."""
        ...

    def begin_step(self) -> None:
        """Set gradients to zero, forget micro-batches whose `backward` never came."""
        ...

    def forward(self, i: int, x: Any) -> np.ndarray:
        """Return the part's outputs of micro-batch i, and keep what `backward` will need.

        `x` is native, of `batch`, where the part begins the model, else what its neighbour gave.
        Running statistics of batch norms follow the order of calls.
        """
        ...

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        """Do `forward` where the part ends the model; return the micro-batch's mean loss.

        `backward` will be that of `weight` times it, the micro-batch's share of the replica's batch.
        """
        ...

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        """Add the micro-batch's gradients to the part's; forget the micro-batch.

        `g` is the gradient of its outputs, None where the part ends the model. Returns that of
        its inputs, None where the part begins it.
        """
        ...

    def gradient(self) -> np.ndarray:
        """Return the flat gradient of the part's trained weights, in the order of the model's."""
        ...

    def set_gradient(self, flat: np.ndarray) -> None:
        """Replace the gradients."""
        ...

    def update(self, learning_rate: float) -> None:
        """Apply the update rule to the part's weights."""
        ...

    def finish_step(self) -> None:
        """Wait until the device has done all that was asked."""
        ...

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the part's outputs as in prediction, without keeping anything."""
        ...

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies of the part's weights, running statistics too, in the neutral layout."""
        ...

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Take the part's weights out of those of the model (others are ignored)."""
        ...

    def resume(self, state: TrainingState) -> None:
        """Go on from there, as `ResumableTrainer`; arrays of other parts are ignored."""
        ...


@runtime_checkable
class TellsKept(Protocol):
    """A part's trainer that knows what it keeps between the passes: what profiles ask."""

    def kept(self, i: int) -> dict[int, int]:
        """Return address and bytes of each buffer that micro-batch i's `backward` will need.

        Weights are left out. Parts in one process that keep the same buffer name the same address.
        """
        ...


@runtime_checkable
class PartFramework(Protocol):
    """A framework that can train some layers of a model: what pipelines and overlap build on."""

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> PartTrainer:
        """Build the part; `plan.weights` holds the whole model's."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RankFiles:
    """What a rank is given: the `plan` to read, the folder `out` to write to.

    `programs` is the folder of the programs of the cell's environment, where it has one, and `cell` the
    cell itself, for a framework that has several programs. `worker` is the command of a rank in Python.
    """

    plan: Path
    out: Path
    programs: Path | None
    cell: TrainCell | None = None
    worker: tuple[str, ...] = ()


class Framework(Protocol):
    """Builds trainers. `environment` names the folder under `envs/` it runs in."""

    environment: str
    # Names among `optimisers.OPTIMISERS`; a framework that does not say has this one.
    optimisers: tuple[str, ...] = ("sgd",)
    # Of a framework with a `command`: the strategies that its program implements, and of their knobs the
    # values, by strategy and knob: None for any, and the default alone where it says nothing. Others are
    # refused, and what a strategy asks of trainers in Python is not asked of it. None: `supports` refuses what the program lacks.
    program_strategies: frozenset[str] | None = None
    program_options: Mapping[str, Mapping[str, tuple[Value, ...] | None]] = MappingProxyType({})
    # A regular expression: a line that its program's runtime prints, and no record, when memory has run out.
    says_no_memory: str = ""

    def supports(self, cell: TrainCell) -> str | None:
        """Return None, or the reason why the cell cannot run."""
        ...

    def builds(self, model: Model) -> str | None:
        """Return None, or the reason why it cannot build the model; most build layers only."""
        return only_layers(model)

    def trainer(self, plan: ModelPlan) -> Trainer:
        """Build the model from the plan's weights."""
        ...

    def command(self, files: RankFiles) -> list[str] | None:
        """Return the argv of a rank in another language, or None for the worker in Python.

        It is told everything by `files.plan`: see docs/trainer-contract.md. `trainer` and
        `libraries` are not called then, and `supports` must refuse strategies that it lacks.
        """
        return None

    def installed(self, files: RankFiles) -> Sequence[Path] | None:
        """Return files and folders without which the cell's ranks do not run, the machine's own left out.

        None: the whole environment, and the interpreter that it borrows. For a program in another language,
        whose environment also holds what built it.
        """
        return None

    def libraries(self) -> dict[str, str]:
        """Return the versions of what computes, for provenance."""
        ...


def only_layers(model: Model) -> str | None:
    """Return the reason why a framework that builds lists of layers cannot build the model."""
    if isinstance(model, LayeredModel):
        return None
    return f"it builds lists of layers, not a {type(model).__name__}"


FRAMEWORKS: Registry[Framework] = Registry("framework", "transect.training.frameworks")
