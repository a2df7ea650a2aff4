"""What starts the payload of a stage: its arguments, as the engine gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transect.planning.stage import STAGES


def payload_arguments(
    stage: str, out: Path, run: dict[str, Any] | None = None, **folders: Path | str | None
) -> list[str]:
    """Return the arguments of `transect.payloads` for the cell whose `spec.json` lies in `out`.

    `folders` are those of the cells that it takes something from, by role; `run` is what is known only then.
    """
    arguments = [STAGES.get(stage).payload, "--spec", str(out / "spec.json"), "--out", str(out)]
    for role, folder in folders.items():
        if folder is not None:
            arguments += ["--take", f"{role}={folder}"]
    return arguments + (["--run", json.dumps(run)] if run is not None else [])


def payload_module(stage: str, out: Path, run: dict[str, Any] | None = None, **folders: Path | str | None) -> list[str]:
    """Return the same behind `-m transect.payloads`."""
    return ["-m", "transect.payloads", *payload_arguments(stage, out, run, **folders)]
