"""What runtimes share that execute a framework's own model, without ONNX."""

from __future__ import annotations

import json
import zipfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transect.domain.axes.infer import InferCell
from transect.domain.errors import BadInput
from transect.runtimes import RUNNERS
from transect.runtimes._programs import CONTRACT, PythonProgram
from transect.runtimes.given import Given
from transect.runtimes.options import EQUAL
from transect.training import layers
from transect.training.frameworks import only_layers
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
        """Return the contract, the layers, and modules of `training/frameworks/` by name."""
        described = Path(layers.__file__)
        frameworks = described.parent / "frameworks"
        return [
            *CONTRACT,
            RUNNERS / "python" / "workload.py",
            described,
            *(frameworks / f"{name}.py" for name in modules),
        ]

    @abstractmethod
    def code_files(self) -> list[Path]:
        """Return source files that the cell runs and its environment does not hold."""


def check_model(path: Path, inputs: Sequence[Given]) -> None:
    """Raise BadInput unless `{"workload", "weights"}` in a file names a workload, and arrays and inputs of its model.

    The inputs are one tensor, rows of the model's samples: float32, or int64 of words.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        model = model_of(WORKLOADS.get(told["workload"]))
        with np.load(told["weights"]) as file:
            given = {name: file[name].shape for name in file.files}
    except (OSError, EOFError, LookupError, TypeError, ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise BadInput(f'{path}: expected {{"workload", "weights"}}: {type(error).__name__}: {error}') from error
    wanted = {weight.name: tuple(weight.shape) for weight in model.weight_shapes()}
    if wrong := sorted(name for name in wanted | given if wanted.get(name) != given.get(name)):
        raise BadInput(
            f"{path}: weights do not fit the model: '{wrong[0]}' has shape {given.get(wrong[0], 'none')}, "
            f"expected {wanted.get(wrong[0], 'no such weight')}"
        )
    dtype, sample = "float32" if model.inputs == "float" else model.inputs, tuple(model.sample)
    if [(tensor.dtype, tensor.shape[1:]) for tensor in inputs] != [(dtype, sample)]:
        told = ", ".join(f"{tensor.dtype} {list(tensor.shape[1:])}" for tensor in inputs)
        raise BadInput(f"{path}: the workload takes one {dtype} tensor, rows of {list(sample)}; got {told}")
