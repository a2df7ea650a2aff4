"""A runtime in two files: this one says what it is, `_extra_runner.py` is the program."""

from pathlib import Path

from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes._programs import CONTRACT, PythonProgram


@RUNTIMES.register("extra-runtime")
class ExtraRuntime(PythonProgram):
    """ONNX's reference implementation: numpy, operator by operator."""

    environment = "conformance"
    program = Path(__file__).with_name("_extra_runner.py")
    imports = ("onnx", "numpy", "numpy.libs", "google")
    providers = ("cpu",)
    precisions = ("fp32",)
    trains = True

    def command(self, python, arguments):
        return ["env", f"PYTHONPATH={RUNNERS / 'python'}", *super().command(python, arguments)]

    def code_files(self):
        return [self.program, *CONTRACT]
