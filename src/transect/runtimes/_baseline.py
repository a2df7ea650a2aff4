"""What runtimes share that execute a framework's own model, without ONNX."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from transect.domain.axes.infer import InferCell
from transect.runtimes import RUNNERS
from transect.runtimes._programs import CONTRACT, PythonProgram
from transect.runtimes.options import EQUAL
from transect.training import layers
from transect.training.frameworks import only_layers
from transect.training.losses import LOSSES
from transect.training.models import Model
from transect.training.workloads import WORKLOADS, model_of


class Baseline(PythonProgram):
    """A program in Python that builds a workload's model and loads its weights.

    A subclass sets `environment`, `program` and `imports`, says what models it `builds`, and names in
    `code_files` what the program is made of.
    """

    uses_exporter = False
    precisions = ("fp32",)

    def supports(self, cell: InferCell) -> str | None:
        """Float32 models of the registered workloads, one call after another."""
        if cell.workload not in WORKLOADS:
            return f"'{cell.workload}' is no workload, whose model could be built"
        if reason := self.builds(model_of(WORKLOADS.get(cell.workload))):
            return reason
        if cell.get("options", EQUAL) != EQUAL:
            return "a baseline has no session options"
        if cell.get("load") is not None:
            return "a baseline is called once after another, without an offered load"
        return super().supports(cell)

    def builds(self, model: Model) -> str | None:
        """Return why it cannot build the model, or None; most build lists of layers."""
        return only_layers(model)

    def shared_files(self, *modules: str) -> list[Path]:
        """Return the contract, the layers, the losses, and modules of `training/frameworks/` by name."""
        described = Path(layers.__file__)
        frameworks = described.parent / "frameworks"
        return [
            *CONTRACT,
            RUNNERS / "python" / "workload.py",
            described,
            *(LOSSES.source(name) for name in LOSSES),
            *(frameworks / f"{name}.py" for name in modules),
        ]

    @abstractmethod
    def code_files(self) -> list[Path]:
        """Return source files that the cell runs and its environment does not hold."""
