"""PyTorch's newer exporter: `torch.export`, then onnxscript's operator library."""

from __future__ import annotations

from pathlib import Path

from transect.onnx_models.exporters import EXPORTERS, Exporter, Source


@EXPORTERS.register("dynamo")
class DynamoExporter(Exporter):
    """`torch.onnx.export(dynamo=True)`."""

    framework = "torch"
    environment = "torch"

    def export(self, source: Source, path: Path) -> None:
        """Export with a symbolic first axis `batch`, the weights inside the file (up to 2 GB)."""
        import torch

        axes = {0: torch.export.Dim("batch")} if source.batched else {}
        for axis, (name, largest) in source.axes.items():
            axes[axis] = torch.export.Dim(name, max=largest)
        shapes = tuple(axes for _ in source.examples)
        torch.onnx.export(
            source.model,
            tuple(torch.from_numpy(array.copy()) for array in source.examples.values()),
            str(path),
            dynamo=True,
            opset_version=source.opset,
            input_names=list(source.examples),
            output_names=list(source.outputs),
            dynamic_shapes=shapes if axes else None,
            external_data=False,
            verbose=False,
        )
