"""ONNX Runtime from Python."""

from __future__ import annotations

from pathlib import Path

from transect.runtimes import RUNNERS, RUNTIMES, unsupported_run
from transect.stages.infer.cell import InferCell

__all__ = ["PythonRuntime"]


@RUNTIMES.register("python")
class PythonRuntime:
    """The onnxruntime package, with I/O binding."""

    environment = "torch"
    uses_exporter = True

    def supports(self, cell: InferCell) -> str | None:
        """Float32, on CPU or CUDA."""
        return unsupported_run(cell)

    def command(self, cell: InferCell, python: str, model: Path, arguments: list[str]) -> list[str]:
        """Run the program with the environment's interpreter."""
        return [python, str(RUNNERS / "python" / "run.py"), "--model", str(model), *arguments]

    def code_files(self) -> list[Path]:
        """Return the program and the contract."""
        return [RUNNERS / "python" / "run.py", RUNNERS / "python" / "contract.py"]
