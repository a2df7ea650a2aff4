"""`transect export-step` and `transect predict`: their work is done in an environment of their own."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from transect.domain.errors import BadInput, MissingDependency
from transect.domain.paths import PYTHONPATH
from transect.domain.terminal import complain


def check_reference(reference: str) -> None:
    """Raise BadInput for what is no MODULE:FACTORY, sooner than an environment is built."""
    name, _, factory = reference.rpartition(":")
    if not name or not factory or (name.endswith(".py") and not Path(name).is_file()):
        raise BadInput(f"{reference}: expected MODULE:FACTORY, a module's name or file and a function in it")


def run_module(environment: str, needs: Sequence[str], module: str, arguments: Sequence[str]) -> None:
    """Run `python -m MODULE`: in this Python where all that it `needs` is installed, else in an environment."""
    python = sys.executable if all(map(importlib.util.find_spec, needs)) else _python(environment)
    paths = os.pathsep.join(filter(None, (PYTHONPATH, os.environ.get("PYTHONPATH"))))
    done = subprocess.run([python, "-m", module, *arguments], env=os.environ | {"PYTHONPATH": paths}, check=False)
    if done.returncode < 0:
        complain(f"{module} was ended by {signal.Signals(-done.returncode).name}")
        raise typer.Exit(128 - done.returncode)
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


def export_step(
    reference: Annotated[str, typer.Argument(metavar="MODULE:FACTORY", help="a module's name or file, a function")],
    out: Annotated[Path, typer.Option(help="folder to write; one that holds a step is replaced")],
) -> None:
    """Export a training step as ONNX files that any ONNX Runtime trains with.

    FACTORY returns a `transect.portable_step.Step`: module, loss, optimiser, example and options. It
    runs in this Python where torch, onnx and onnxscript are installed, else in the environment
    `torch`, which is built once. Example: transect export-step train.py:make_step --out step
    """
    check_reference(reference)
    run_module("torch", ("torch", "onnx", "onnxscript"), "transect.portable_step", [f"--out={out}", "--", reference])


def predict(
    model: Annotated[Path, typer.Argument(help="folder of a classify cell, or its predict.onnx")],
    tickets: Annotated[Path, typer.Argument(help="file or folder of tickets")],
    kind: Annotated[str | None, typer.Option("--format", help="of the tickets [default: by the file's name]")] = None,
    option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of the format, as in a study; repeatable")] = None,
    top: Annotated[int, typer.Option(help="how many of the likeliest classes to print")] = 3,
    unsure: Annotated[
        float | None, typer.Option(help="below this probability the answer is unsure [default: the model's own]")
    ] = None,
    output: Annotated[str, typer.Option(help="jsonl or csv")] = "jsonl",
) -> None:
    """Predict the likeliest owners or queues of new tickets, or answer that it is unsure.

    Tickets are read, redacted and cut as those were that the model was trained on. Exit code 1
    when some could not be read: stderr lists them. The work is done in the environment `text`, which is
    built once. Example: transect predict results/tickets/classify/CELL new.jsonl --unsure 0.6
    """
    if output not in ("jsonl", "csv"):
        raise BadInput(f"--output {output!r}: expected jsonl or csv")
    for path in (model, tickets):
        # Sooner than the environment is built.
        if not path.exists():
            raise BadInput(f"{path}: no such file or folder")
    given = ["--top", str(top), "--output", output]
    for name, value in (("--format", kind), ("--unsure", unsure)):
        given += [] if value is None else [name, str(value)]
    for pair in option or ():
        given += ["--option", pair]
    # Names of files may begin with a dash.
    given += ["--", str(model), str(tickets)]
    run_module("text", ("onnxruntime", "py3langid"), "transect.text.predict_command", given)
