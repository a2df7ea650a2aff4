"""Check the cases and write down what was found, for the table of the docs.

`python -m transect.portable_step.coverage [NAME …]`, in an environment with torch, onnx and
onnxruntime. Exits 1 when a case is not right, and does not write that one.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

from transect.portable_step.coverage import CASES
from transect.portable_step.coverage.measured import MEASURED, Measured, Row


def _row(name: str) -> Row | None:
    """Check a case, say what was found, and return its row; None when it is not right."""
    from transect.portable_step.coverage.check import check

    found = check(CASES[name])
    right = found.float64 < CASES[name].bound and max(found.excess, found.path or 0) <= 1
    path = "" if found.path is None else f", path {found.path:.2f}"
    print(
        f"{'ok   ' if right else 'WRONG'} {name}: float64 {found.float64:.1e}, float32 "
        f"{found.float32:.1e} (PyTorch {found.framework:.1e}), {found.excess:.2f} of the "
        f"tolerance{path}",
        flush=True,
    )
    row = Row(operators=found.operators, float64=found.float64, float32=found.float32, framework=found.framework)
    return row if right else None


def _versions() -> dict[str, str]:
    import onnxruntime
    import torch

    return {"torch": torch.__version__, "onnxruntime": onnxruntime.__version__}


def main() -> int:
    """Run the checks that the arguments name; return the exit code."""
    parser: Any = argparse.ArgumentParser(prog="coverage", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=Path, default=MEASURED, help="the file to write")
    given = parser.parse_args()
    if strange := set(given.names) - set(CASES):
        parser.error(f"{sorted(strange)[0]}: expected names of {', '.join(CASES)}")
    import torch

    torch.set_num_threads(1)
    wrong = False
    for name in given.names or CASES:
        row = _row(name)
        wrong |= row is None
        if row is not None:
            _add(given.out, name, row)
    return int(wrong)


def _add(path: Path, name: str, row: Row) -> None:
    """Put a row into the file, in the order of the cases; rows of cases that are gone are left out."""
    before = Measured.read(path)
    rows = (before.rows if before else {}) | {name: row}
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    there = {one: rows[one] for one in CASES if one in rows}
    Measured(date=today, versions=_versions(), rows=there).write(path)


if __name__ == "__main__":
    sys.exit(main())
