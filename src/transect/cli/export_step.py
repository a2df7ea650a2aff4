"""`transect export-step`: a training step as an ordinary ONNX file."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from transect.domain.errors import MissingDependency

__all__ = ["export_step"]

_ENVIRONMENT = "torch"
_SOURCES = Path(__file__).resolve().parents[2]


def export_step(
    reference: Annotated[
        str, typer.Argument(metavar="MODULE:FACTORY", help="a module's name or file, a function")
    ],
    out: Annotated[Path, typer.Option(help="folder to write; one that holds a step is replaced")],
) -> None:
    """Export a training step as ONNX files that any ONNX Runtime trains with.

    FACTORY returns a `transect.portable_step.Step`: module, loss, optimiser, example and options. It
    runs in this Python where torch, onnx and onnxscript are installed, else in the environment
    `torch`, which is built once. Example: transect export-step train.py:make_step --out step
    """
    command = [_python(), "-m", "transect.portable_step", reference, "--out", str(out)]
    paths = os.pathsep.join(filter(None, (str(_SOURCES), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)


def _python() -> str:
    """Return an interpreter that has torch; raises MissingDependency when none can be made."""
    if all(importlib.util.find_spec(name) for name in ("torch", "onnx", "onnxscript")):
        return sys.executable
    from transect.execution.build_environment import build

    with tempfile.TemporaryDirectory(prefix="export-step-") as folder:
        facts = build(_ENVIRONMENT, Path(folder) / "build.log")
    if facts["status"] != "ok":
        raise MissingDependency(f"environment {_ENVIRONMENT}: {facts['message']}")
    return str(facts["python"])
