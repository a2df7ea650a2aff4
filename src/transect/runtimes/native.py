"""ONNX Runtime from languages that are compiled."""

from __future__ import annotations

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNTIMES
from transect.runtimes._programs import CompiledRuntime, missing_tool


@RUNTIMES.register("c", "onnxruntime")
class CRuntime(CompiledRuntime):
    """ONNX Runtime's C API, with I/O binding."""

    environment = "runner-c"
    program = "transect-runner-c"
    trains = True


@RUNTIMES.register("cpp", "c++", "cxx", "onnxruntime")
class CppRuntime(CompiledRuntime):
    """ONNX Runtime's C++ API, with I/O binding."""

    environment = "runner-cpp"
    program = "transect-runner-cpp"
    trains = True


@RUNTIMES.register("go", "golang")
class GoRuntime(CompiledRuntime):
    """The module `onnxruntime_go`, into outputs of the program's own."""

    environment = "runner-go"
    program = "transect-runner-go"
    trains = True


@RUNTIMES.register("rust", "rs")
class RustRuntime(CompiledRuntime):
    """The crate `ort`."""

    environment = "runner-rust"
    program = "transect-runner-rust"
    trains = True

    def supports(self, cell: InferCell) -> str | None:
        """On CPU or CUDA, where cargo can build it."""
        return super().supports(cell) or missing_tool(
            "cargo", how="install Rust (rustup, or the distribution's cargo) >= 1.92"
        )
