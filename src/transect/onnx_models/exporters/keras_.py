"""Keras' own export, by its back end: tf2onnx from TensorFlow, `torch.onnx` from torch."""

from __future__ import annotations

from pathlib import Path

from transect.domain.cell import Cell
from transect.onnx_models.exporters import EXPORTERS, Source, unsupported_export


@EXPORTERS.register("keras")
class KerasExporter:
    """`model.export(format="onnx")` with Keras 3 on TensorFlow."""

    framework = "keras-tensorflow"
    environment = "export-tensorflow"

    def supports(self, cell: Cell) -> str | None:
        """Float32 models of Keras on this back end."""
        return unsupported_export(self, cell)

    def export(self, source: Source, path: Path) -> None:
        """Write a model that was called before; Keras names the ends itself."""
        source.model.export(str(path), format="onnx", verbose=False, opset_version=source.opset)


@EXPORTERS.register("keras-torch")
class KerasTorchExporter(KerasExporter):
    """`model.export(format="onnx")` with Keras 3 on torch."""

    framework = "keras-torch"
    environment = "torch"
