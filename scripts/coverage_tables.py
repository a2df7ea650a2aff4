"""The tables of what a portable training step covers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

_SUPPORT = Path(__file__).resolve().parents[1] / "tests" / "support"
sys.path.insert(0, str(_SUPPORT))

from step_coverage import CASES, UNCOVERED  # noqa: E402

Table = Callable[[list[str], list[list[str]]], str]

# Its operators stand once above the table, and not in every row.
_PLAIN_CASE = "mlp"


def covered_parts(table: Table) -> list[str]:
    """Return text and tables: what is covered, and what is not."""
    measured = json.loads((_SUPPORT / "step_coverage" / "measured.json").read_text(encoding="utf-8"))
    plain = measured["rows"][_PLAIN_CASE]["operators"]
    rows = []
    for name, case in CASES.items():
        row = measured["rows"].get(name)
        if row is None:
            rows.append([case.group, case.what, *["not measured"] * 4])
            continue
        more = [one for one in row["operators"] if one not in plain]
        errors = [f"{row[key]:.0e}" for key in ("float64", "float32", "framework")]
        rows.append([case.group, case.what, ", ".join(more), *errors])
    versions = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    columns = ["", "case", "operators", "float64", "float32", "PyTorch float32"]
    return [
        f"Largest relative errors of loss, gradients and next buffers against PyTorch in float64, over "
        "batches of three lengths: of the traced graph in float64, of the exported one in "
        f"ONNX Runtime, and of PyTorch itself in float32. Run of {measured['date']}: {versions}. Operators beside "
        f"{', '.join(plain)}.",
        table(columns, rows),
        "Not covered; each is refused with an error that names the operator:",
        table(["what", "why"], [[case.what, why] for case, why, _ in UNCOVERED.values()]),
    ]
