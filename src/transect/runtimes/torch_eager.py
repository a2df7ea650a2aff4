"""PyTorch in eager mode: a baseline for the exported model."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.retrain import RetrainCell
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes._baseline import Baseline
from transect.training.models import Model, no_module
from transect.training.own_workload import OwnWorkload
from transect.training.workloads import WORKLOADS, model_of

_BUILDING = ("_torch_modules", "_torch_encoder")


@RUNTIMES.register("torch-eager", "torch", "pytorch", "eager")
class TorchEagerRuntime(Baseline):
    """The model as trained, without an export."""

    environment = "torch"
    imports = ("torch", "numpy", "numpy.libs")
    program = RUNNERS / "torch-eager" / "run.py"
    trains = True
    uses_step = False

    def trains_on(self, cell: RetrainCell) -> str | None:
        """Whatever it builds, by torch's own optimisers."""
        workload = WORKLOADS.get(cell.workload)
        if isinstance(workload, OwnWorkload):
            return "it retrains transect's own models: a module in a user's file is retrained as an exported step"
        return self.builds(model_of(workload))

    def builds(self, model: Model) -> str | None:
        """Whatever gives a module."""
        return no_module(model)

    def code_files(self) -> list[Path]:
        """Return the programs' files, and what builds the module."""
        programs = sorted((RUNNERS / "torch-eager").glob("*.py"))
        return [*programs, *self.shared_files(*_BUILDING)]


@RUNTIMES.register("torchscript", "torch", "pytorch")
class TorchScriptRuntime(TorchEagerRuntime):
    """The model as trained, traced and frozen by `torch.jit`."""

    # Frozen weights are constants.
    trains = False
    program = RUNNERS / "torch-eager" / "run_torchscript.py"
