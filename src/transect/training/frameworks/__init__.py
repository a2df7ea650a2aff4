"""Frameworks: who computes gradients. One file each; its import stays inside the class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from transect.domain.axes.train import TrainCell
from transect.domain.options import Value
from transect.domain.registry import Plugin, Registry
from transect.training.layered import LayeredModel
from transect.training.layers import Layer, walk
from transect.training.models import Model, called
from transect.training.trainers import (
    BaseTrainer,
    FusedTrainer,
    ModelPart,
    ModelPlan,
    PartTrainer,
    ResumableTrainer,
    TellsKept,
    Trainer,
    TrainingState,
)

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

    @property
    def losses(self) -> tuple[str, ...]:
        """Names among `losses.LOSSES` that it has."""
        return ("cross-entropy", "mse")

    # Why no environment installs it, and what one would need; empty where one does.
    not_installed: str = ""
    # Hyper-parameters that it follows, of those that not every framework has: `support.SPECIAL`.
    follows: tuple[str, ...] = ()
    # Kinds of transect's own layers that it cannot build.
    lacks: tuple[type[Layer], ...] = ()

    @abstractmethod
    def supports(self, cell: TrainCell) -> str | None:
        """Return None, or the reason why the cell cannot run."""

    def builds(self, model: Model) -> str | None:
        """Return None, or the reason why it cannot build the model; most build layers only."""
        return only_layers(model, self.lacks)

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

    The program gets everything by `RankFiles.plan`; `trainer` and `libraries` are not called.
    """

    # The strategies that the program implements. Others are refused, and what a strategy asks
    # of trainers in Python is not asked of it. None: `supports` refuses what the program lacks.
    program_strategies: frozenset[str] | None = None
    # The values that it takes of their options, by strategy and option: None is any, no entry the default alone.
    program_options: Mapping[str, Mapping[str, tuple[Value, ...] | None]] = MappingProxyType({})
    # Whether the program waits for its turn, as `measure/turns.py` does.
    takes_turns: bool = False
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


def only_layers(model: Model, lacks: tuple[type[Layer], ...] = ()) -> str | None:
    """Return the reason why a framework that builds lists of layers, but those that it lacks, cannot build the model."""
    if isinstance(model, LayeredModel):
        missing = {type(one.layer).__name__ for one in walk(model.layers, model.sample) if isinstance(one.layer, lacks)}
        return f"of transect's layers it does not build {', '.join(sorted(missing))}" if missing else None
    return f"it builds transect's own layers, not {called(model)}"


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
