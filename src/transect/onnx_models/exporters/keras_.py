"""Keras' own export, by its back end: tf2onnx from TensorFlow, `torch.onnx` from torch."""

from __future__ import annotations

from pathlib import Path

from transect.onnx_models.exporters import EXPORTERS, Exporter, Source


@EXPORTERS.register("keras")
class KerasExporter(Exporter):
    """`model.export(format="onnx")` with Keras 3 on TensorFlow."""

    framework = "keras-tensorflow"
    environment = "export-tensorflow"

    def export(self, source: Source, path: Path) -> None:
        """Write a model that was called before; Keras names the ends itself."""
        source.model.export(str(path), format="onnx", verbose=False, opset_version=source.opset)


@EXPORTERS.register("keras-torch")
class KerasTorchExporter(KerasExporter):
    """`model.export(format="onnx")` with Keras 3 on torch."""

    framework = "keras-torch"
    environment = "torch"
