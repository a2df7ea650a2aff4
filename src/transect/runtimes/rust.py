"""ONNX Runtime from Rust."""

from __future__ import annotations

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNTIMES
from transect.runtimes._programs import CompiledRuntime, missing_tool


@RUNTIMES.register("rust")
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
