"""`transect predict`: a trained classifier applied to new tickets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transect.cli.elsewhere import run_module
from transect.domain.errors import BadInput


def predict(
    model: Annotated[Path, typer.Argument(help="folder of a classify cell, or its predict.onnx")],
    tickets: Annotated[Path, typer.Argument(help="file or folder of tickets")],
    kind: Annotated[str | None, typer.Option("--format", help="of the tickets, where the name does not tell")] = None,
    option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of the format, as in a study; repeatable")] = None,
    top: Annotated[int, typer.Option(help="how many of the likeliest classes are told")] = 3,
    unsure: Annotated[
        float | None, typer.Option(help="below this probability no class is told [default: the model's own]")
    ] = None,
    output: Annotated[str, typer.Option(help="jsonl or csv")] = "jsonl",
) -> None:
    """Tell the likeliest owners or queues of new tickets, or that nobody knows.

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
    for one in option or ():
        given += ["--option", one]
    # Names of files may begin with a dash.
    given += ["--", str(model), str(tickets)]
    run_module("text", ("onnxruntime", "py3langid"), "transect.text.predict_command", given)
