"""Frameworks: who computes gradients. One file each; its import stays inside the class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Value
from transect.domain.registry import Plugin, Registry
from transect.training.layered import LayeredModel
from transect.training.layers import Layer, Shape
from transect.training.models import Model
from transect.training.workloads import Parameters

__all__ = [
    "FRAMEWORKS",
    "BaseTrainer",
    "Framework",
    "FusedTrainer",
    "ModelPart",
    "ModelPlan",
    "PartFramework",
    "PartTrainer",
    "ProgramFramework",
    "RankFiles",
    "ResumableTrainer",
    "TellsKept",
    "Trainer",
    "TrainingState",
    "only_layers",
    "runs_on",
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


class BaseTrainer(ABC):
    """What trainers of whole models and of parts share: weights with their gradients and optimiser.

    The update rule is that of `parameters.optimiser`, the same everywhere, for all trained weights
    (`optimisers`). The loss is a mean over the batch.
    """

    @abstractmethod
    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Bring a batch, x (n, ...) and y (n, ...) int64, to device and precision."""

    @abstractmethod
    def gradient(self) -> np.ndarray:
        """Return the flat gradient, one contiguous buffer in a fixed order."""

    @abstractmethod
    def set_gradient(self, flat: np.ndarray) -> None:
        """Replace the gradients by those of the flat buffer."""

    @abstractmethod
    def update(self, learning_rate: float) -> None:
        """Apply the update rule to the weights."""

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

    def __post_init__(self) -> None:
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
    """A part's trainer that knows what it keeps between the passes: what profiles ask."""

    @abstractmethod
    def kept(self, i: int) -> dict[int, int]:
        """Return address and bytes of each buffer that micro-batch i's `backward` will need.

        Weights are left out. Parts in one process that keep the same buffer name the same address.
        """


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


class Framework(Plugin, ABC):
    """Builds trainers: see docs/adding/framework.md for a whole one."""

    @property
    @abstractmethod
    def environment(self) -> str:
        """Name the folder under `envs/` that it runs in."""

    @property
    def optimisers(self) -> tuple[str, ...]:
        """Names among `optimisers.OPTIMISERS` that it has."""
        return ("sgd",)

    @abstractmethod
    def supports(self, cell: TrainCell) -> str | None:
        """Return None, or the reason why the cell cannot run."""

    def builds(self, model: Model) -> str | None:
        """Return None, or the reason why it cannot build the model; most build layers only."""
        return only_layers(model)

    @abstractmethod
    def trainer(self, plan: ModelPlan) -> Trainer:
        """Build the model from the plan's weights."""

    @abstractmethod
    def libraries(self) -> dict[str, str]:
        """Return the versions of what computes, for provenance."""


class PartFramework(Framework):
    """A framework that can train some layers of a model: what pipelines and overlap build on."""

    @abstractmethod
    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> PartTrainer:
        """Build the part; `plan.weights` holds the whole model's."""


class ProgramFramework(Framework):
    """A framework whose ranks are a program in another language: see docs/trainer-contract.md.

    The program is told everything by `RankFiles.plan`; `trainer` and `libraries` are not called.
    """

    # The strategies that the program implements. Others are refused, and what a strategy asks
    # of trainers in Python is not asked of it. None: `supports` refuses what the program lacks.
    program_strategies: frozenset[str] | None = None
    # The values that it takes of their knobs, by strategy and knob. None is any, and the default alone where it says nothing.
    program_options: Mapping[str, Mapping[str, tuple[Value, ...] | None]] = MappingProxyType({})
    # A regular expression: a line that its program's runtime prints, and no record, when memory has run out.
    says_no_memory: str = ""

    @abstractmethod
    def command(self, files: RankFiles) -> list[str]:
        """Return the argv of a rank."""

    def installed(self, files: RankFiles) -> Sequence[Path] | None:
        """Return files and folders without which the cell's ranks do not run, the machine's own left out.

        None: the whole environment, and the interpreter that it borrows. An environment also holds what built the program.
        """
        return None

    def trainer(self, plan: ModelPlan) -> Trainer:
        """There is none in Python. Raises TypeError."""
        raise TypeError(f"{type(self).__name__} is a program of its own, see `command`")

    def libraries(self) -> dict[str, str]:
        """Nothing: the program tells its own."""
        return {}


def only_layers(model: Model) -> str | None:
    """Return the reason why a framework that builds lists of layers cannot build the model."""
    if isinstance(model, LayeredModel):
        return None
    return f"it builds lists of layers, not a {type(model).__name__}"


def runs_on(
    cell: TrainCell,
    who: str,
    devices: tuple[str, ...] = ("cpu",),
    precisions: tuple[str, ...] = ("fp32", "fp64"),
    why: str = "",
) -> str | None:
    """Return the reason why a framework of these devices and precisions cannot run the cell, or None.

    `why` it has no other devices.
    """
    if cell.device not in devices:
        return f"{who} runs on {' or '.join(devices)}, not on {cell.device}" + (f": {why}" if why else "")
    if cell.precision not in precisions:
        return f"{who} trains in {' or '.join(precisions)}, not in {cell.precision}"
    return None


FRAMEWORKS: Registry[Framework] = Registry("framework", "transect.training.frameworks", Framework)
