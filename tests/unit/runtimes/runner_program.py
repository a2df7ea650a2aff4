"""Starts the runners in other languages than Python and reads what they left."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
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
QUICK = ("--warmup", "2", "--min-runs", "20", "--max-seconds", "0")


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
    """What one run of the program left."""

    code: int
    stderr: str
    folder: Path

    @property
    def record(self) -> dict[str, Any]:
        """The record; of `cases` use `lines`."""
        return dict(json.loads((self.folder / "record.json").read_text()))

    def lines(self) -> list[dict[str, Any]]:
        """The record of mode `cases`."""
        text = (self.folder / "record.json").read_text()
        return [json.loads(line) for line in text.splitlines()]

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

    def command(self, folder: Path, *arguments: str | Path) -> list[str]:
        """Return its argument list, with `--record FOLDER/record.json`."""
        given = [*map(str, arguments), "--record", str(folder / "record.json")]
        return RUNTIMES.get(self.runtime).command(self.python, given)

    def start(self, folder: Path, *arguments: str | Path, **variables: str) -> Run:
        """Run it to its end."""
        done = subprocess.run(
            self.command(folder, *arguments),
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
        return Run(done.returncode, done.stderr, folder)

    def paths(self, folder: Path, model: str) -> list[str | Path]:
        """Return the arguments of files; the inputs are in `FOLDER/inputs`."""
        return [
            "--model",
            self.models / f"{model}.onnx",
            "--inputs",
            folder / "inputs",
            "--outputs",
            folder / "outputs",
        ]

    def latency(
        self,
        folder: Path,
        model: str,
        tensors: Mapping[str, np.ndarray],
        *more: str | Path,
        options: dict[str, Any] | None = None,
        **header: Any,
    ) -> Run:
        """Run a model in mode `latency`, on tensors that are written first."""
        write_tensors(folder / "inputs", tensors, **header)
        if options is not None:
            (folder / "options.json").write_text(json.dumps(options))
            more = ("--options", folder / "options.json", *more)
        return self.start(folder, *self.paths(folder, model), *QUICK, *more)

    def load(self, folder: Path, arrivals: Any, *more: str | Path, model: str = "linear") -> Run:
        """Run a model in mode `load`, on two rows at a time of X."""
        np.asarray(arrivals, "<i8").tofile(folder / "arrivals.bin")
        write_tensors(folder / "inputs", {"x": X}, batch=2)
        given = ("--mode", "load", "--arrivals", folder / "arrivals.bin", "--warmup", "1", *more)
        return self.start(folder, *self.paths(folder, model), *given)

    def cases(self, folder: Path, given: Mapping[str, tuple[str, Mapping[str, np.ndarray]]], *more: str) -> Run:
        """Run models in mode `cases`: model and inputs by the case's name; a model may not be there."""
        cases = []
        for name, (model, tensors) in given.items():
            inputs = write_tensors(folder / name, tensors).parent
            paths = {"inputs": str(inputs), "outputs": str(folder / f"{name}-outputs")}
            cases.append({"name": name, "model": str(self.models / f"{model}.onnx"), **paths})
        (folder / "cases.json").write_text(json.dumps(cases))
        return self.start(folder, "--mode", "cases", "--cases", folder / "cases.json", *more)


def is_narrow(values: list[int]) -> bool:
    """Tell by the runners' in Python whether a median is known well."""
    sys.path.insert(0, str(RUNNERS / "python"))
    try:
        return bool(importlib.import_module("latency").interval_is_narrow(values))
    finally:
        sys.path.remove(str(RUNNERS / "python"))
        for name in ("latency", "engines", "outputs", "tensors"):
            sys.modules.pop(name, None)
