"""scikit-learn's converter, a project of its own."""

from __future__ import annotations

from pathlib import Path

from transect.onnx_models.exporters import EXPORTERS, Exporter, Source


@EXPORTERS.register("sklearn")
class SklearnExporter(Exporter):
    """`skl2onnx.to_onnx`."""

    framework = "sklearn"
    environment = "export-sklearn"

    def export(self, source: Source, path: Path) -> None:
        """Convert a pipeline with a column of inputs for each example; texts stay texts."""
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType, StringTensorType

        types = [
            (
                name,
                (FloatTensorType if array.dtype.kind == "f" else StringTensorType)(
                    [None if source.batched else array.shape[0], *array.shape[1:]]
                ),
            )
            for name, array in source.examples.items()
        ]
        model = to_onnx(
            source.model, initial_types=types, target_opset=source.opset, options=dict(source.options) or None
        )
        path.write_bytes(model.SerializeToString())
