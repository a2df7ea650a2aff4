"""Commands whose work is done in an environment of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import typer

from transect.domain.errors import MissingDependency

_SOURCES = Path(__file__).resolve().parents[2]


def run_module(environment: str, needs: Sequence[str], module: str, arguments: Sequence[str]) -> None:
    """Run `python -m MODULE`: in this Python where all that it `needs` is installed, else in an
    environment, which is built once.

    Ends with the module's exit code, unless that is 0. Raises MissingDependency when the environment
    cannot be made.
    """
    python = sys.executable if all(map(importlib.util.find_spec, needs)) else _python(environment)
    paths = os.pathsep.join(filter(None, (str(_SOURCES), os.environ.get("PYTHONPATH"))))
    done = subprocess.run([python, "-m", module, *arguments], env=os.environ | {"PYTHONPATH": paths}, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)


def _python(environment: str) -> str:
    from transect.engine.build_environment import build
    from transect.engine.run_block import end_on_signals

    # Or pip would go on when this process is asked to end.
    end_on_signals()
    with tempfile.TemporaryDirectory(prefix=f"{environment}-") as folder:
        facts = build(environment, Path(folder) / "build.log")
    if facts["status"] != "ok":
        raise MissingDependency(f"environment {environment}: {facts['message']}")
    return str(facts["python"])
