"""Starts the runner in Java, or one in JavaScript, and reads what it left."""

from __future__ import annotations

import json
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
from transect.onnx_models.tensors import NoTensor, read_tensors, write_tensors
from transect.runtimes import RUNTIMES
from warm import warm

# Of what Chromium shares with Node.js: reading, checking and writing are the same code.
BROWSER_AT_TIMES = ["javascript", pytest.param("browser", marks=pytest.mark.exhaustive)]
QUICK = ("--warmup", "2", "--min-runs", "20", "--max-seconds", "0")


def python_of(runtime: str, folder: Path) -> str:
    """Return the interpreter of a runtime's environment; skip where it cannot be."""
    if reason := RUNTIMES.get(runtime).supports(infer_cell(runtime)):
        pytest.skip(reason)
    return environment_python(RUNTIMES.get(runtime).environment, folder)


def make_models(torch_python: str, folder: Path, language: str = "javascript") -> Path:
    """Make the models of LANGUAGE_models.py; return the folder."""
    helper = Path(__file__).with_name(f"{language}_models.py")
    warm(torch_python).check(helper, folder)
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
    """A runner in its environment, and a folder of models: `runtime` is java, javascript or browser."""

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
            self.command(folder, *arguments), env=os.environ | variables, capture_output=True, text=True, check=False
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
