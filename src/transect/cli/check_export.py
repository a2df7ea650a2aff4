"""`transect check-export`: an exported ONNX model beside its torch module."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transect.cli.elsewhere import check_reference, run_module
from transect.cli.output import Json
from transect.domain.errors import BadInput


def check_export(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="the exported file")],
    against: Annotated[str, typer.Option(metavar="MODULE:FACTORY", help="a module's name or file, a function")],
    inputs: Annotated[
        Path | None, typer.Option(help="a file .npz with an array for each input, in place of FACTORY's example")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell whether an exported ONNX model gives a torch module's outputs, and where it does not.

    FACTORY returns the module, a pair of it and its example inputs, or a `transect.portable_step.Step`. Each output has
    its largest deviation beside a tolerance that follows from the module and the graph. Exit code: 0 faithful, 4 not, 2
    something cannot be used. It runs in this Python where torch, onnx and onnxruntime are installed, else in the
    environment `torch`, which is built once. Example: transect check-export net.onnx --against net.py:make
    """
    check_reference(against)
    for path in (model, inputs):
        if path is not None and not path.is_file():
            raise BadInput(f"{path}: no such file")
    # Names of files may begin with a dash.
    given = [f"--against={against}", *([f"--inputs={inputs}"] if inputs else []), *(["--json"] if as_json else [])]
    needs = ("torch", "onnx", "onnxruntime")
    run_module("torch", needs, "transect.portable_step.check_export", [*given, "--", str(model)])
