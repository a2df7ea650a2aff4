"""`python -m transect.stages.ingest.worker --path LOGS --out DIR`: parse, leave the runs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pydantic import TypeAdapter

from transect.domain.files import write_atomic
from transect.hpc.base import Run
from transect.hpc.ingest import ingest
from transect.hpc.refusal import STRICT, Refusal, checked_limits

RUNS_FILE = "runs.json"
RUNS: TypeAdapter[list[Run]] = TypeAdapter(list[Run])


def main() -> int:
    """Ingest one source of a study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limits", type=json.loads, default=None)
    given = parser.parse_args()
    strict = given.limits == STRICT
    limits = checked_limits(given.limits, "limits") if given.limits and not strict else {}
    runs = ingest([given.path], refusal=Refusal(strict=strict, limits=limits))
    write_atomic(given.out / RUNS_FILE, RUNS.dump_json(runs, exclude_defaults=True).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
