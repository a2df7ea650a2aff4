"""PyTorch in eager mode: what the exported model is set against."""

from __future__ import annotations

from pathlib import Path

from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes._baseline import Baseline

__all__ = ["TorchEagerRuntime"]


@RUNTIMES.register("torch-eager")
class TorchEagerRuntime(Baseline):
    """The model as trained, without an export."""

    environment = "torch"
    package = "torch"
    program = RUNNERS / "torch-eager" / "run.py"

    def code_files(self) -> list[Path]:
        """Return the programs' files, and what builds the module."""
        own = [self.program, RUNNERS / "torch-eager" / "eager.py"]
        return [*own, *self.shared_files("_torch_modules")]
