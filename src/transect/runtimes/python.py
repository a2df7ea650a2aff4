"""ONNX Runtime from Python."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNNERS, RUNTIMES, unsupported_run
from transect.runtimes._programs import CONTRACT, TRAINING, missing_library, packages

_TENSORRT = "install TensorRT 10 for CUDA 13, and put its folder into LD_LIBRARY_PATH"


@RUNTIMES.register("python")
class PythonRuntime:
    """The onnxruntime package, called with arrays."""

    environment = "onnxruntime"
    uses_exporter = True
    trains = True

    def supports(self, cell: InferCell) -> str | None:
        """Every precision, on CPU, CUDA or TensorRT."""
        if cell.provider == "openvino":
            return "OpenVINO is in another package than CUDA: choose the runtime python-openvino"
        reason = unsupported_run(cell, providers=("cpu", "cuda", "tensorrt"))
        if reason is None and cell.provider == "tensorrt":
            reason = missing_library("libnvinfer.so.10", "libnvonnxparser.so.10", how=_TENSORRT)
        return reason

    def command(self, python: str, arguments: list[str]) -> list[str]:
        """Run the program with the environment's interpreter."""
        return [python, str(RUNNERS / "python" / "run.py"), *arguments]

    def files(self, python: str) -> list[Path]:
        """Return the packages that it imports."""
        return packages(python, "onnxruntime", "numpy", "numpy.libs")

    def tools(self) -> list[str]:
        """Return nothing of the machine's own."""
        return []

    def code_files(self) -> list[Path]:
        """Return the program and the contract."""
        folder = RUNNERS / "python"
        return [folder / "run.py", folder / "session.py", *CONTRACT, *TRAINING]
