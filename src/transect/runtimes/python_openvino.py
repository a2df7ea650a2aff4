"""ONNX Runtime from Python with OpenVINO, which has a package of its own."""

from __future__ import annotations

from pathlib import Path

from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.python import PythonRuntime


@RUNTIMES.register("python-openvino")
class PythonOpenVinoRuntime(PythonRuntime):
    """The onnxruntime-openvino package, with an older ONNX Runtime in it: 1.24.1; its device is the CPU."""

    environment = "onnxruntime-openvino"
    program = RUNNERS / "python" / "run_openvino.py"
    trains = False
    providers = ("openvino",)

    def code_files(self) -> list[Path]:
        """Return the programs, one of which calls the other, and the contract."""
        return [RUNNERS / "python" / "run.py", *super().code_files()]
