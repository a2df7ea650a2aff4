"""ONNX Runtime from Python, with I/O binding."""

from __future__ import annotations

from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.python import PythonRuntime


@RUNTIMES.register("python-iobinding")
class PythonIoBindingRuntime(PythonRuntime):
    """The onnxruntime package, with I/O binding: copies stand apart from Run."""

    program = RUNNERS / "python" / "run_iobinding.py"
