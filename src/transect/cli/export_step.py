"""`transect export-step`: a training step as an ordinary ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transect.cli.elsewhere import run_module
from transect.domain.errors import BadInput


def export_step(
    reference: Annotated[str, typer.Argument(metavar="MODULE:FACTORY", help="a module's name or file, a function")],
    out: Annotated[Path, typer.Option(help="folder to write; one that holds a step is replaced")],
) -> None:
    """Export a training step as ONNX files that any ONNX Runtime trains with.

    FACTORY returns a `transect.portable_step.Step`: module, loss, optimiser, example and options. It
    runs in this Python where torch, onnx and onnxscript are installed, else in the environment
    `torch`, which is built once. Example: transect export-step train.py:make_step --out step
    """
    name, _, factory = reference.rpartition(":")
    # Sooner than the environment is built.
    if not name or not factory or (name.endswith(".py") and not Path(name).is_file()):
        raise BadInput(f"{reference}: expected MODULE:FACTORY, a module's name or file and a function in it")
    run_module("torch", ("torch", "onnx", "onnxscript"), "transect.portable_step", [reference, "--out", str(out)])
