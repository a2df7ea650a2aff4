"""No exporter: models that are written as they are."""

from __future__ import annotations

from pathlib import Path

from transect.onnx_models.exporters import EXPORTERS, Exporter, Source


@EXPORTERS.register("onnx")
class OnnxExporter(Exporter):
    """The file is the model: written node by node with `onnx.helper`."""

    framework = "onnx"
    environment = "export-sklearn"

    def export(self, source: Source, path: Path) -> None:
        """Write the model."""
        path.write_bytes(source.model.SerializeToString())
