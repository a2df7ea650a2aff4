"""Parsers read the logs of one source, and the runs are left in `runs.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from transect.domain.files import write_atomic
from transect.hpc.base import Run
from transect.hpc.ingest import ingest
from transect.hpc.refusal import STRICT, Refusal, checked_limits

RUNS_FILE = "runs.json"
RUNS: TypeAdapter[list[Run]] = TypeAdapter(list[Run])


def run(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> None:
    """Read the logs of one cell."""
    given = spec.get("limits")
    strict = given == STRICT
    limits = checked_limits(given, "limits") if given and not strict else {}
    runs = ingest([Path(spec["path"])], refusal=Refusal(strict=strict, limits=limits))
    write_atomic(out / RUNS_FILE, RUNS.dump_json(runs, exclude_defaults=True).decode())
