"""TensorFlow's converter, a project of its own: freezes a function and rewrites its graph."""

from __future__ import annotations

from pathlib import Path

from transect.onnx_models.exporters import EXPORTERS, Exporter, Source


@EXPORTERS.register("tf2onnx")
class Tf2OnnxExporter(Exporter):
    """`tf2onnx.convert.from_function`."""

    framework = "tensorflow"
    environment = "export-tensorflow"

    def export(self, source: Source, path: Path) -> None:
        """Freeze a function of the inputs, by position, that gives a tuple of outputs."""
        import tensorflow as tf
        import tf2onnx

        rows = (None,) if source.batched else ()
        signature = [
            tf.TensorSpec((*rows, *array.shape[len(rows) :]), array.dtype, name=name)
            for name, array in source.examples.items()
        ]

        def named(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            return dict(zip(source.outputs, source.model(*inputs), strict=True))

        tf2onnx.convert.from_function(
            tf.function(named, input_signature=signature),
            input_signature=signature,
            opset=source.opset,
            output_path=str(path),
        )
