"""Exporters: from a framework's model to one ONNX file. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.registry import Plugin, Registry

__all__ = ["EXPORTERS", "INPUT", "OUTPUT", "Exporter", "Source"]

# Names of the one input and the one output of every trained model.
INPUT = "input"
OUTPUT = "output"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What is exported: a model of the exporter's framework, and what its ends are called.

    `examples` holds an array for each input, by name, in the order in which the model takes them.
    With `batched` their first axis, of n >= 2 rows, is dynamic: an axis of 1 may be taken for a
    constant. Without it their shapes are the model's. `axes` are further axes of every input that are
    dynamic, by number: a name and the largest size. `opset` None takes the exporter's default.
    `options` are of one exporter alone.
    """

    model: Any
    examples: dict[str, np.ndarray]
    outputs: tuple[str, ...] = (OUTPUT,)
    batched: bool = True
    axes: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    opset: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class Exporter(Plugin, ABC):
    """Writes ONNX."""

    # Whose models it takes.
    framework: str
    # The folder under `envs/` that it runs in.
    environment: str

    @abstractmethod
    def export(self, source: Source, path: Path) -> None:
        """Write one file with the weights inside. Raises whatever the exporter raises."""

    def supports(self, cell: Cell) -> str | None:
        """Return None, or the reason why the cell cannot be exported. Imports no framework."""
        framework = cell.get("framework")
        if framework not in (None, self.framework):
            return f"this exporter takes models of {self.framework}, not of {framework}"
        if cell.stage == "export" and self.framework != "torch":
            return f"trained models are exported from torch, not from {self.framework}"
        if cell.precision != "fp32":
            return f"models are exported in fp32, not in {cell.precision}"
        return None


EXPORTERS: Registry[Exporter] = Registry("exporter", "transect.onnx_models.exporters", Exporter)
