"""Start a cell's payload: `python -m transect.payloads MODULE:FUNCTION --spec FILE --out FOLDER [--take ROLE=FOLDER]…`.

Leaves `result.json` in `--out`, also of a payload that raises: its cause and its message. A payload that returns None
leaves what it has to say in files of its own. Exit code 0 unless it raised: a failed
result that it returns is a verdict.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import traceback
from pathlib import Path

from transect.domain.errors import FAULTS, error_facts
from transect.domain.files import write_atomic

RESULT = "result.json"


def main(arguments: list[str] | None = None) -> int:
    """Run one payload; return the exit code of its process."""
    parser = argparse.ArgumentParser(prog="python -m transect.payloads", description="one cell's payload")
    parser.add_argument("payload", help="package.module:function")
    parser.add_argument("--spec", type=Path, help="plan of the cell, JSON; none: the payload needs none")
    parser.add_argument("--out", type=Path, required=True, help="folder of the cell")
    parser.add_argument("--take", action="append", default=[], metavar="ROLE=FOLDER", help="folder of another cell")
    parser.add_argument(
        "--run", type=json.loads, default={}, help="JSON: what is known only now; under `run` of the spec"
    )
    given = parser.parse_args(arguments)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        module, _, function = given.payload.partition(":")
        spec = json.loads(given.spec.read_text(encoding="utf-8")) if given.spec else {}
        folders = {role: Path(folder) for role, _, folder in (take.partition("=") for take in given.take)}
        if "own_workload" in spec:
            # By its name: of all payloads few train, and what they run is in their own sources.
            importlib.import_module("transect.training.own_workload").define_from(spec)
        result = getattr(importlib.import_module(module), function)(spec | {"run": given.run}, folders, given.out)
        if result is None:
            return 0
        # JSON has no NaN or infinity.
        text = json.dumps({"status": "ok", **result}, indent=1, allow_nan=False)
    except FAULTS as error:
        traceback.print_exc()
        text = json.dumps({"status": "failed", **error_facts(error)}, indent=1)
        write_atomic(given.out / RESULT, text + "\n")
        return 1
    write_atomic(given.out / RESULT, text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
