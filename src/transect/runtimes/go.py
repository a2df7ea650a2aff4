"""ONNX Runtime from Go."""

from __future__ import annotations

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNTIMES, unsupported_run
from transect.runtimes._programs import CompiledRuntime


@RUNTIMES.register("go")
class GoRuntime(CompiledRuntime):
    """The module `onnxruntime_go`, into outputs of the program's own."""

    environment = "runner-go"
    program = "transect-runner-go"
    trains = True

    def supports(self, cell: InferCell) -> str | None:
        """On CPU or CUDA. No toolchain is needed: `build.sh` can install one."""
        return unsupported_run(cell)
