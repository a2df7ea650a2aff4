"""`torch.compile`: the framework's own compiler, a baseline for eager mode and ONNX."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.domain.axes.retrain import RetrainCell
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes._programs import missing_tool
from transect.runtimes.torch_eager import TorchEagerRuntime


def _no_compiler() -> str | None:
    """Return what inductor lacks to compile its kernels, or None."""
    chosen = os.environ.get("CXX")
    if chosen and shutil.which(chosen.split()[0]) is None:
        return f"CXX is '{chosen}', which is not on PATH: torch.compile compiles C++ with it"
    missing = None if chosen else missing_tool("g++", how="install a C++ compiler, such as GCC")
    # The environment's interpreter is made from this one, whose headers it uses.
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if missing is None and not header.is_file():
        return f"{header} is not there: install Python's headers, such as python3-dev"
    return missing


@RUNTIMES.register("torch-compile", "torch", "pytorch", "torch.compile", "compile")
class TorchCompileRuntime(TorchEagerRuntime):
    """The model as trained, through `torch.compile` and its inductor."""

    program = RUNNERS / "torch-eager" / "run_compile.py"

    def tools(self) -> list[str]:
        """The compiler makes the kernels while the cell runs."""
        return [os.environ.get("CXX") or "g++"]

    def supports(self, cell: InferCell) -> str | None:
        """Where there is a C++ compiler."""
        return super().supports(cell) or _no_compiler()

    def trains_on(self, cell: RetrainCell) -> str | None:
        """Where there is a C++ compiler."""
        return super().trains_on(cell) or _no_compiler()
