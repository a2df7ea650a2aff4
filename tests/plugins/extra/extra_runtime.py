"""A runtime in one file: the Python runner under another name."""

from transect.runtimes import RUNTIMES
from transect.runtimes.python import PythonRuntime


@RUNTIMES.register("extra-runtime")
class ExtraRuntime(PythonRuntime):
    """ONNX Runtime from Python."""
