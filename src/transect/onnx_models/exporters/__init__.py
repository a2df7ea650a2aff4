"""Exporters: from a framework's model to one ONNX file. One file each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from transect.domain.registry import Registry
from transect.stages.export.cell import ExportCell

if TYPE_CHECKING:
    import torch

__all__ = ["EXPORTERS", "INPUT", "OUTPUT", "Exporter", "unsupported_export"]

# Names of the one input and the one output of every exported model.
INPUT = "input"
OUTPUT = "output"


class Exporter(Protocol):
    """Writes ONNX. `framework` is whose models it takes, `environment` the folder in `envs/`."""

    framework: str
    environment: str

    def supports(self, cell: ExportCell) -> str | None:
        """Return None, or the reason why the cell cannot be exported. Imports no framework."""
        ...

    def export(
        self, module: torch.nn.Module, example: torch.Tensor, path: Path, *, opset: int | None
    ) -> None:
        """Write one file with the weights inside and a dynamic first axis.

        `example` is (n, ...) with n >= 2: an axis of 1 may be taken for a constant. `opset` None
        takes the exporter's own default. Raises whatever the exporter raises.
        """
        ...


EXPORTERS: Registry[Exporter] = Registry("exporter", "transect.onnx_models.exporters")


def unsupported_export(exporter: Exporter, cell: ExportCell) -> str | None:
    """Return why a cell of another framework or precision cannot be exported, or None."""
    if cell.framework not in (None, exporter.framework):
        return f"this exporter takes models of {exporter.framework}, not of {cell.framework}"
    if cell.precision != "fp32":
        return f"models are exported in fp32, not in {cell.precision}"
    return None
