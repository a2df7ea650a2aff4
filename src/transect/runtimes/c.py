"""ONNX Runtime from C."""

from __future__ import annotations

from transect.runtimes import RUNTIMES
from transect.runtimes._programs import CompiledRuntime


@RUNTIMES.register("c")
class CRuntime(CompiledRuntime):
    """ONNX Runtime's C API, with I/O binding."""

    environment = "runner-c"
    program = "transect-runner-c"
    trains = True
