"""A module of torch as a workload's model: what planning cannot know of it comes from `module.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from transect.domain.errors import BadInput
from transect.training.layers import Shape, Weight
from transect.training.losses import LOSSES, check_targets
from transect.training.models import Arrays, Computation, ModelCosts

if TYPE_CHECKING:
    import torch

    from transect.training.workloads import Parameters

# What the stage `inspect` leaves, and the data stage beside its arrays.
MODULE_FACTS = "module.json"


@dataclass(frozen=True, kw_only=True)
class ModuleModel:
    """What `name` in `file` makes when it is called with `options`.

    `facts` are those of `payloads.inspect_module`; empty while a study is planned.
    """

    file: Path
    name: str
    options: dict[str, Any]
    # Which targets it is held against, and so its score.
    loss: str = "cross-entropy"
    # File and name of a function that is made small in its place.
    own_loss: tuple[Path, str] | None = None
    # File and name of a function that makes the optimiser.
    own_optimiser: tuple[Path, str] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    axes: ClassVar[Mapping[int, tuple[str, int]]] = {}
    # Nobody knows before it has run: a batch norm, or a loss over pairs of samples.
    what: ClassVar[str] = "a module of torch in a file of the study's own"
    parts_matter: ClassVar[bool] = True

    @classmethod
    def described(
        cls,
        file: Path,
        name: str,
        options: dict[str, Any],
        loss: str,
        own_loss: tuple[Path, str] | None,
        own_optimiser: tuple[Path, str] | None,
        data: Path | None,
    ) -> ModuleModel:
        """Return it with the facts in the data stage's folder, where there is one."""
        facts = {} if data is None else json.loads((data / MODULE_FACTS).read_text(encoding="utf-8"))
        return cls(
            file=file,
            name=name,
            options=options,
            loss=loss,
            own_loss=own_loss,
            own_optimiser=own_optimiser,
            facts=facts,
        )

    def known(self, key: str) -> Any:
        """Return one of the facts. Raises BadInput where the module has not been inspected."""
        if key not in self.facts:
            raise BadInput(f"{self.file}:{self.name}: its {key} is known only after the stage `inspect`")
        return self.facts[key]

    @property
    def sample(self) -> Shape:
        """Return the shape of one input."""
        return tuple(self.known("sample"))

    @property
    def inputs(self) -> Literal["float", "int64"]:
        """Say what becomes of samples."""
        inputs: Literal["float", "int64"] = self.known("inputs")
        return inputs

    @property
    def draws(self) -> bool:
        """Whether its forward pass draws random numbers, as dropout does."""
        return bool(self.facts.get("draws"))

    def not_checkable(self, device: str) -> str | None:
        """Return why a run on the device cannot follow the float64 reference, which is a CPU's, or None."""
        if self.draws and device != "cpu":
            return f"the forward pass of {self.name} draws random numbers, and those of a {device} device are others"
        reason: str | None = self.facts.get("not_checkable")
        return reason

    def check_data(self, shape: Shape, y: np.ndarray, classes: tuple[str, ...]) -> None:
        """Raise BadInput unless samples are those that were inspected, and the loss takes the targets."""
        if shape != self.sample:
            raise BadInput(f"samples have shape {shape}, {self.name} was tried with {self.sample}")
        check_targets(self.loss, self.output, y, classes)

    @property
    def output(self) -> Shape:
        """Return the shape of one output."""
        return tuple(self.known("output"))

    @property
    def score(self) -> str:
        """Name the loss's metric of outputs."""
        return LOSSES.get(self.loss).score

    @cached_property
    def _weights(self) -> list[Weight]:
        return [Weight(each["name"], tuple(each["shape"]), trained=each["trained"]) for each in self.known("weights")]

    def weight_shapes(self) -> list[Weight]:
        """Return parameters in the module's order, each once, then its buffers of real numbers."""
        return self._weights

    def initial_weights(self, seed: int) -> Arrays:
        """There are none without torch: the stage `inspect` has drawn them."""
        raise BadInput(f"{self.file}:{self.name}: its weights are those that the stage `inspect` has drawn")

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return standard normal numbers, or whole numbers in the range of the data's; and a target of the loss."""
        low, high = self.known("range")
        real = self.inputs == "float"
        x = generator.standard_normal(self.sample) if real else generator.integers(low, high + 1, self.sample)
        output = self.output
        y: Any
        match LOSSES.get(self.loss).targets:
            case "classes":
                y = generator.integers(output[0])
            case "tokens":
                y = generator.integers(output[-1], size=output[:-1])
            case "labels":
                y = generator.integers(2, size=output)
            case "numbers":
                return np.asarray(x), np.asarray(generator.standard_normal(output))
        return np.asarray(x), np.asarray(y, np.int64)

    def costs(self, parameters: Parameters) -> ModelCosts:
        """Return what was counted of its matrix products, convolutions and attention."""
        return ModelCosts(**self.known("costs"))

    def longest_sum(self, batch: int) -> int:
        """Return that of its products, forwards and backwards, or the batch."""
        return max(batch, int(self.known("longest_sum")))

    def computation(self, parameters: Parameters, weights: Arrays, gradients: Arrays) -> Computation:
        """Bind torch's autograd to the arrays."""
        computing = import_module("transect.training.frameworks._torch_computation")
        bound: Computation = computing.TorchComputation(self, parameters, weights, gradients)
        return bound

    def torch_module(self) -> torch.nn.Module:
        """Make the module; its weights are to be loaded."""
        files = import_module("transect.training.frameworks._module_files")
        module: torch.nn.Module = files.make_module(self.file, self.name, self.options)
        return module

    def score_sum(self, outputs: np.ndarray, y: np.ndarray) -> float:
        """Add them up as the loss says."""
        return LOSSES.get(self.loss).score_sum(outputs, y)
