"""ONNX Runtime from Python with OpenVINO, which has a package of its own."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNNERS, RUNTIMES, unsupported_run
from transect.runtimes.python import PythonRuntime


@RUNTIMES.register("python-openvino")
class PythonOpenVinoRuntime(PythonRuntime):
    """The onnxruntime-openvino package, with an older ONNX Runtime in it: 1.24.1."""

    environment = "onnxruntime-openvino"
    trains = False

    def supports(self, cell: InferCell) -> str | None:
        """Every precision on the provider `openvino`, whose device is the CPU."""
        return unsupported_run(cell, providers=("openvino",))

    def command(self, python: str, arguments: list[str]) -> list[str]:
        """Run the program with the environment's interpreter."""
        return [python, str(RUNNERS / "python" / "run_openvino.py"), *arguments]

    def code_files(self) -> list[Path]:
        """Return the programs and the contract."""
        return [RUNNERS / "python" / "run_openvino.py", *super().code_files()]
