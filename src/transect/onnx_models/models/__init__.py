"""Models that are made to be ported: each in the frameworks that can express it. One file each.

Their weights and inputs are drawn from the study's seed, the same numbers for all frameworks.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.registry import Plugin, Registry
from transect.onnx_models.tensors import NoTensor

__all__ = ["MODELS", "Arrays", "Built", "MadeModel", "Outputs", "drawing"]

Arrays = dict[str, np.ndarray]
Outputs = Mapping[str, np.ndarray | NoTensor]


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """A model in its framework, and what that computes.

    `inputs` by name, in the order in which the model takes them; `calibration`: other inputs of the
    same form, from which a converter may learn ranges. `outputs`: what the framework computes of
    `inputs` in float32. `exact`: the same in float64, None where the framework cannot. With
    `batched` the first axis of all ends counts rows. `options` are for the exporter.
    """

    model: Any
    inputs: Arrays
    calibration: Arrays
    outputs: Outputs
    exact: Arrays | None
    batched: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


class MadeModel(Plugin, ABC):
    """A model that is there to be ported, with drawn weights."""

    # Those in which it has a form.
    frameworks: tuple[str, ...]

    @abstractmethod
    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Make it. The exporter is given, since some need a form of their own."""

    def supports(self, cell: Cell) -> str | None:
        """Return None, or the reason why the cell's framework cannot make it."""
        framework = cell.get("framework")
        if framework in (None, *self.frameworks):
            return None
        return f"this model has a form in {', '.join(self.frameworks)}, none in {framework}"


MODELS: Registry[MadeModel] = Registry("model", "transect.onnx_models.models", MadeModel)


def drawing(seed: int, name: str) -> np.random.Generator:
    """Return the generator of a model: another one for each name."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])
