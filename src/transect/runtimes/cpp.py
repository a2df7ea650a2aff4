"""ONNX Runtime from C++."""

from __future__ import annotations

from transect.runtimes import RUNTIMES
from transect.runtimes._programs import CompiledRuntime


@RUNTIMES.register("cpp")
class CppRuntime(CompiledRuntime):
    """ONNX Runtime's C++ API, with I/O binding."""

    environment = "runner-cpp"
    program = "transect-runner-cpp"
    trains = True
