"""Into OpenVINO."""

from __future__ import annotations

from pathlib import Path

from transect.onnx_models.loaders import LOADERS, Compute, Loader


@LOADERS.register("openvino")
class OpenVino(Loader):
    """`openvino.compile_model` on the CPU, held to float32."""

    environment = "import-others"

    def load(self, path: Path) -> Compute:
        """Compile the file; without the hint it computes in bfloat16 where the processor has it."""
        import openvino

        compiled = openvino.compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return lambda inputs: list(compiled(dict(inputs)).values())
