"""Starts the runners in C, C++, Rust and Go and reads what they left."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from transect.domain.cell import Cell
from transect.onnx_models.tensors import DTYPES, write_tensors
from transect.runtimes import RUNTIMES
from warm import warm

NATIVE = ("c", "cpp", "rust", "go")
X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9
# What a case comes to whose output is an absent optional.
ABSENT = {"c": "ok", "cpp": "ok", "rust": "unsupported", "go": "unsupported"}


@dataclass
class Program:
    """A runner of one language, and the models to run."""

    name: str
    python: str
    models: Path

    @classmethod
    def of(cls, name: str, models: Path) -> Program:
        """Return the runner of a language; skip where it cannot be built."""
        runtime = RUNTIMES.get(name)
        cell = Cell.of(stage="infer", workload="x", runtime=name, provider="cpu", batch=1)
        if reason := runtime.supports(cell):
            pytest.skip(reason)
        return cls(name, environment_python(runtime.environment, models.parent), models)

    def start(self, folder: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
        """Run it; what it writes is in `folder`."""
        given = ["--record", str(folder / "record.json"), *map(str, arguments)]
        command = RUNTIMES.get(self.name).command(self.python, given)
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)

    def paths(self, folder: Path, model: str) -> tuple[Any, ...]:
        """Return the arguments that name model, inputs and outputs, for few quick iterations."""
        return (
            "--model",
            self.models / f"{model}.onnx",
            "--inputs",
            folder / "inputs",
            "--outputs",
            folder / "outputs",
            "--warmup",
            2,
            "--min-runs",
            20,
            "--max-seconds",
            0,
        )

    def latency(
        self, folder: Path, model: str, tensors: Mapping[str, np.ndarray], *more: Any, **header: Any
    ) -> tuple[int, dict[str, Any], str]:
        """Run mode `latency`; return exit code, record and standard error."""
        write_tensors(folder / "inputs", tensors, **header)
        done = self.start(folder, *self.paths(folder, model), *more)
        return done.returncode, json.loads((folder / "record.json").read_text()), done.stderr


def make_models(torch_python: str, folder: Path) -> Path:
    """Make the models of native_models.py; return the folder."""
    helper = Path(__file__).with_name("native_models.py")
    warm(torch_python).check(helper, folder, *DTYPES)
    return folder


def case(folder: Path, name: str, model: Path, tensors: dict[str, np.ndarray]) -> dict[str, str]:
    """Write the inputs of one case; return it as it stands in a list of cases."""
    write_tensors(folder / name, tensors)
    return {"name": name, "model": str(model), "inputs": str(folder / name), "outputs": str(folder / f"{name}-outputs")}
