"""ONNX Runtime from Go."""

from __future__ import annotations

from transect.runtimes import RUNTIMES
from transect.runtimes._programs import CompiledRuntime


@RUNTIMES.register("go")
class GoRuntime(CompiledRuntime):
    """The module `onnxruntime_go`, into outputs of the program's own."""

    environment = "runner-go"
    program = "transect-runner-go"
    trains = True
