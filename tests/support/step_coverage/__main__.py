"""Check the cases and write down what was found, for the table of the docs.

`PYTHONPATH=src:tests/support python -m step_coverage [NAME …]`, in an environment with torch, onnx and
onnxruntime. Exits 1 when a case is not right, and does not write that one.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from step_coverage import CASES
from step_coverage.check import check

MEASURED = Path(__file__).with_name("measured.json")


def _row(name: str) -> dict[str, Any] | None:
    """Check a case, say what was found, and return its row; None when it is not right."""
    found = check(CASES[name])
    right = found.float64 < CASES[name].bound and max(found.excess, found.path or 0) <= 1
    path = "" if found.path is None else f", path {found.path:.2f}"
    print(
        f"{'ok   ' if right else 'WRONG'} {name}: float64 {found.float64:.1e}, float32 "
        f"{found.float32:.1e} (PyTorch {found.framework:.1e}), {found.excess:.2f} of the "
        f"tolerance{path}",
        flush=True,
    )
    return {key: getattr(found, key) for key in ("operators", "float64", "float32", "framework")} if right else None


def _write(path: Path, rows: dict[str, Any]) -> None:
    """Write the file, a row a line; rows of cases that are gone are left out."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    versions = {"torch": torch.__version__, "onnxruntime": onnxruntime.__version__}
    lines = [f"    {json.dumps(name)}: {json.dumps(rows[name])}" for name in CASES if name in rows]
    head = f'{{\n  "date": {json.dumps(today)},\n  "versions": {json.dumps(versions)},'
    path.write_text("\n".join([head, '  "rows": {', ",\n".join(lines), "  }", "}"]) + "\n", encoding="utf-8")


def main() -> int:
    """Run the checks that the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(prog="step_coverage", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *CASES])
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = json.loads(MEASURED.read_text(encoding="utf-8"))["rows"] if MEASURED.is_file() else {}
    wrong = False
    for name in given.names or CASES:
        if row := _row(name):
            rows[name] = row
            _write(MEASURED, rows)
        else:
            wrong = True
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
