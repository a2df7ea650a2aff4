"""No exporter: models that are written as they are."""

from __future__ import annotations

from pathlib import Path

from transect.domain.cell import Cell
from transect.onnx_models.exporters import EXPORTERS, Source, unsupported_export


@EXPORTERS.register("onnx")
class OnnxExporter:
    """The file is the model: written node by node with `onnx.helper`."""

    framework = "onnx"
    environment = "export-sklearn"

    def supports(self, cell: Cell) -> str | None:
        """Models that no framework makes."""
        return unsupported_export(self, cell)

    def export(self, source: Source, path: Path) -> None:
        """Write the model."""
        path.write_bytes(source.model.SerializeToString())
