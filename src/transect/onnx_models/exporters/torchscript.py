"""PyTorch's older exporter: traces to TorchScript and translates operator by operator."""

from __future__ import annotations

from pathlib import Path

from transect.onnx_models.exporters import EXPORTERS, Exporter, Source


@EXPORTERS.register("torchscript")
class TorchScriptExporter(Exporter):
    """`torch.onnx.export(dynamo=False)`."""

    framework = "torch"
    environment = "torch"

    def export(self, source: Source, path: Path) -> None:
        """Trace with the examples, unless the model is a script; the first axis is `batch`."""
        import torch

        rows = {0: "batch"} if source.batched else {}
        axes = rows | {axis: name for axis, (name, _) in source.axes.items()}
        torch.onnx.export(
            source.model,
            tuple(torch.from_numpy(array.copy()) for array in source.examples.values()),
            str(path),
            dynamo=False,
            opset_version=source.opset,
            input_names=list(source.examples),
            output_names=list(source.outputs),
            dynamic_axes=dict.fromkeys(source.examples, axes) | dict.fromkeys(source.outputs, rows),
        )
