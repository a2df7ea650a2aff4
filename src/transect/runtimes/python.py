"""ONNX Runtime from Python."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes._programs import CONTRACT, PythonProgram, missing_library

_TENSORRT = "install TensorRT 10 for CUDA 13, and put its folder into LD_LIBRARY_PATH"


@RUNTIMES.register("python", "py", "onnxruntime")
class PythonRuntime(PythonProgram):
    """The onnxruntime package, called with arrays."""

    environment = "onnxruntime"
    program = RUNNERS / "python" / "run.py"
    imports = ("onnxruntime", "numpy", "numpy.libs")
    trains = True
    providers: tuple[str, ...] = ("cpu", "cuda", "tensorrt")

    def supports(self, cell: InferCell) -> str | None:
        """Every precision, on CPU, CUDA or TensorRT."""
        if cell.provider == "openvino" and cell.provider not in self.providers:
            return "OpenVINO is in another package than CUDA: choose the runtime python-openvino"
        reason = super().supports(cell)
        if reason is None and cell.provider == "tensorrt":
            reason = missing_library("libnvinfer.so.10", "libnvonnxparser.so.10", how=_TENSORRT)
        return reason

    def code_files(self) -> list[Path]:
        """Return the program and the contract."""
        return [self.program, self.program.with_name("session.py"), *CONTRACT]


@RUNTIMES.register("python-iobinding")
class PythonIoBindingRuntime(PythonRuntime):
    """The onnxruntime package, with I/O binding: copies stand apart from Run."""

    program = RUNNERS / "python" / "run_iobinding.py"


@RUNTIMES.register("python-openvino", "openvino")
class PythonOpenVinoRuntime(PythonRuntime):
    """The onnxruntime-openvino package, with an older ONNX Runtime in it: 1.24.1; its device is the CPU."""

    environment = "onnxruntime-openvino"
    program = RUNNERS / "python" / "run_openvino.py"
    trains = False
    providers = ("openvino",)

    def code_files(self) -> list[Path]:
        """Return the programs, one of which calls the other, and the contract."""
        return [RUNNERS / "python" / "run.py", *super().code_files()]
