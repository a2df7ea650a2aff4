"""Starts the runners in other languages than Python and reads what they left."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from factories import infer_cell
from transect.onnx_models.tensors import DTYPES, NoTensor, read_tensors, write_tensors
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.plan_file import Level, Plan
from transect.runtimes.programs import run_record, said_lines, start_command
from transect.runtimes.serving_plans import Case, Serving, cases_from, cases_plan
from warm import warm

NATIVE = ("c", "cpp", "rust", "go")
SCRIPTS = ("javascript", "browser")
EVERY = (*NATIVE, "java", *SCRIPTS)
# Of what Chromium shares with Node.js: reading, checking and writing are the same code.
BROWSER_AT_TIMES = ["javascript", pytest.param("browser", marks=pytest.mark.exhaustive)]
MAX_COUNT = [*NATIVE, "java", *BROWSER_AT_TIMES]
X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9
# As runner_models.py makes it.
LINEAR = np.maximum(X @ (np.arange(12, dtype=np.float32).reshape(4, 3) / 7), 0)
QUICK = {"warmup": 2, "min_runs": 20, "max_seconds": 0}


def python_of(runtime: str, folder: Path) -> str:
    """Return the interpreter of a runtime's environment; skip where it cannot be."""
    if reason := RUNTIMES.get(runtime).supports(infer_cell(runtime)):
        pytest.skip(reason)
    return environment_python(RUNTIMES.get(runtime).environment, folder)


def make_models(torch_python: str, folder: Path) -> Path:
    """Make the models of runner_models.py; return the folder."""
    warm(torch_python).check(Path(__file__).with_name("runner_models.py"), folder, *DTYPES)
    return folder


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the program left. Python's own refusals are a record too, of code 2."""

    code: int
    stderr: str
    folder: Path
    record: dict[str, Any]

    def lines(self) -> list[dict[str, Any]]:
        """What the program says of its cases."""
        return [line for line in said_lines(self.folder) if "case" in line]

    def outputs(self) -> dict[str, np.ndarray | NoTensor]:
        """What was written."""
        return read_tensors(self.folder / "outputs")


@dataclass(frozen=True, slots=True)
class Program:
    """A runner in its environment, and a folder of models: `runtime` is one of EVERY."""

    runtime: str
    python: str
    models: Path

    @classmethod
    def of(cls, runtime: str, models: Path) -> Program:
        """Return the runner of a runtime; skip where it cannot be."""
        return cls(runtime, python_of(runtime, models.parent), models)

    def start(self, plan: Plan, folder: Path, **variables: str) -> Run:
        """Run a plan to its end; `folder` is its `out`."""
        done = subprocess.run(
            start_command(self.runtime, self.python, plan),
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
        record = {} if plan.level is Level.CASES else run_record(self.runtime, folder, done.returncode)
        return Run(done.returncode, done.stderr, folder, record)

    def plan(self, folder: Path, model: str, **asked: Any) -> Plan:
        """Return the plan of a model on the inputs in `FOLDER/inputs`; `asked`: fields of `Serving`."""
        asked = QUICK | asked
        paths = {"inputs": folder / "inputs", "outputs": folder / "outputs", "out": folder}
        return Serving(model=self.models / f"{model}.onnx", **paths, **asked).plan()

    def serve(self, folder: Path, model: str, **asked: Any) -> Run:
        """Run that plan to its end."""
        return self.start(self.plan(folder, model, **asked), folder)

    def latency(
        self, folder: Path, model: str, tensors: Mapping[str, np.ndarray], *, batch: int | None = None, **asked: Any
    ) -> Run:
        """Run a model at level `latency`, on tensors that are written first."""
        write_tensors(folder / "inputs", tensors, **({} if batch is None else {"batch": batch}))
        return self.serve(folder, model, **asked)

    def load(self, folder: Path, arrivals: Any, model: str = "linear", **asked: Any) -> Run:
        """Run a model at level `load`, on two rows at a time of X."""
        np.asarray(arrivals, "<i8").tofile(folder / "arrivals.bin")
        write_tensors(folder / "inputs", {"x": X}, batch=2)
        return self.serve(folder, model, arrivals=folder / "arrivals.bin", **{"warmup": 1, **asked})

    def cases(
        self, folder: Path, given: Mapping[str, tuple[str, Mapping[str, np.ndarray]]], first: int = 0
    ) -> tuple[Run, dict[str, str]]:
        """Run models at level `cases`: model and inputs by the case's name; return also what Python refused, and why."""
        cases = []
        for name, (model, tensors) in given.items():
            inputs = write_tensors(folder / name, tensors).parent
            path = self.models / f"{model}.onnx"
            cases.append(Case(name=name, model=path, inputs=inputs, outputs=folder / f"{name}-outputs"))
        plan, refused = cases_plan(cases, provider="cpu", options={}, out=folder)
        return self.start(cases_from(plan, first), folder), refused


def is_narrow(values: list[int]) -> bool:
    """Tell by the runners' in Python whether a median is known well."""
    spec = importlib.util.spec_from_file_location("stopping", RUNNERS / "python" / "stopping.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return bool(module.interval_is_narrow(values))
