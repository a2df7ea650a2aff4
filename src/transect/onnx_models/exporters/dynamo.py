"""PyTorch's newer exporter: `torch.export`, then onnxscript's operator library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transect.onnx_models.exporters import EXPORTERS, INPUT, OUTPUT, unsupported_export
from transect.stages.export.cell import ExportCell

if TYPE_CHECKING:
    import torch

__all__ = ["DynamoExporter"]


@EXPORTERS.register("dynamo")
class DynamoExporter:
    """`torch.onnx.export(dynamo=True)`."""

    framework = "torch"
    environment = "torch"

    def supports(self, cell: ExportCell) -> str | None:
        """Float32 models of PyTorch."""
        return unsupported_export(self, cell)

    def export(
        self, module: torch.nn.Module, example: torch.Tensor, path: Path, *, opset: int | None
    ) -> None:
        """Export with a symbolic first axis `batch`, the weights inside the file (up to 2 GB)."""
        import torch

        torch.onnx.export(
            module,
            (example,),
            str(path),
            dynamo=True,
            opset_version=opset,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            external_data=False,
            verbose=False,
        )
