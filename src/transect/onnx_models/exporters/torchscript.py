"""PyTorch's older exporter: traces to TorchScript and translates operator by operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transect.onnx_models.exporters import EXPORTERS, INPUT, OUTPUT, unsupported_export
from transect.stages.export.cell import ExportCell

if TYPE_CHECKING:
    import torch

__all__ = ["TorchScriptExporter"]


@EXPORTERS.register("torchscript")
class TorchScriptExporter:
    """`torch.onnx.export(dynamo=False)`."""

    framework = "torch"
    environment = "torch"

    def supports(self, cell: ExportCell) -> str | None:
        """Float32 models of PyTorch."""
        return unsupported_export(self, cell)

    def export(
        self, module: torch.nn.Module, example: torch.Tensor, path: Path, *, opset: int | None
    ) -> None:
        """Trace with the example; the first axis is named `batch`."""
        import torch

        torch.onnx.export(
            module,
            (example,),
            str(path),
            dynamo=False,
            opset_version=opset,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_axes={INPUT: {0: "batch"}, OUTPUT: {0: "batch"}},
        )
