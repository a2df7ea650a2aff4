"""ONNX Runtime from C++."""

from __future__ import annotations

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNTIMES, unsupported_run
from transect.runtimes._programs import CompiledRuntime


@RUNTIMES.register("cpp")
class CppRuntime(CompiledRuntime):
    """ONNX Runtime's C++ API, with I/O binding."""

    environment = "runner-cpp"
    program = "transect-runner-cpp"
    trains = True

    def supports(self, cell: InferCell) -> str | None:
        """Float32, on CPU or CUDA. No compiler is needed: `build.sh` can install one."""
        return unsupported_run(cell)
