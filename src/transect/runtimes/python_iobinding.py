"""ONNX Runtime from Python, with I/O binding."""

from __future__ import annotations

from pathlib import Path

from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.python import PythonRuntime


@RUNTIMES.register("python-iobinding")
class PythonIoBindingRuntime(PythonRuntime):
    """The onnxruntime package, with I/O binding: copies stand apart from Run."""

    def command(self, python: str, arguments: list[str]) -> list[str]:
        """Run the program with the environment's interpreter."""
        return [python, str(RUNNERS / "python" / "run_iobinding.py"), *arguments]

    def code_files(self) -> list[Path]:
        """Return the program and the contract."""
        return [RUNNERS / "python" / "run_iobinding.py", *super().code_files()[1:]]
