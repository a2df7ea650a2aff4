"""PyTorch in eager mode: what the exported model is set against."""

from __future__ import annotations

from pathlib import Path

from transect.runtimes import RUNNERS, RUNTIMES, unsupported_run
from transect.runtimes._programs import CONTRACT, packages
from transect.stages.infer.cell import InferCell
from transect.training import layers
from transect.training.workloads import WORKLOADS

__all__ = ["TorchEagerRuntime"]


@RUNTIMES.register("torch-eager")
class TorchEagerRuntime:
    """The model as trained, without an export."""

    environment = "torch"
    uses_exporter = False

    def supports(self, cell: InferCell) -> str | None:
        """Float32 models of the registered workloads, on CPU or CUDA."""
        if cell.workload not in WORKLOADS:
            return f"workload '{cell.workload}' has no layers to build"
        return unsupported_run(cell, precisions=("fp32",))

    def command(self, python: str, arguments: list[str]) -> list[str]:
        """Run the program with the environment's interpreter."""
        return [python, str(RUNNERS / "torch-eager" / "run.py"), *arguments]

    def files(self, python: str) -> list[Path]:
        """Return the packages that it imports."""
        return packages(python, "torch", "numpy", "numpy.libs")

    def code_files(self) -> list[Path]:
        """Return the program, the contract, and what builds the module."""
        described = Path(layers.__file__)
        return [
            RUNNERS / "torch-eager" / "run.py",
            *CONTRACT,
            described,
            described.parent / "frameworks" / "_torch_modules.py",
        ]
