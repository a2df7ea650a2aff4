"""The tables of what a portable training step covers."""

from __future__ import annotations

from collections.abc import Callable

from transect.portable_step.coverage import CASES, UNCOVERED
from transect.portable_step.coverage.measured import Measured

Table = Callable[[list[str], list[list[str]]], str]

# Its operators stand once above the table, and not in every row.
_PLAIN_CASE = "mlp"


def covered_parts(table: Table) -> list[str]:
    """Return text and tables: what is covered, and what is not."""
    run = Measured.read()
    if run is None or _PLAIN_CASE not in run.rows:
        raise SystemExit(
            "generate-docs: nothing measured: run `python -m transect.portable_step.coverage` in the environment torch"
        )
    plain = run.rows[_PLAIN_CASE].operators
    rows = []
    for name, case in CASES.items():
        row = run.rows.get(name)
        if row is None:
            rows.append([case.group, case.what, *["not measured"] * 4])
            continue
        more = [one for one in row.operators if one not in plain]
        errors = (row.float64, row.float32, row.framework)
        rows.append([case.group, case.what, ", ".join(more), *(f"{one:.0e}" for one in errors)])
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    columns = ["", "case", "operators", "float64", "float32", "PyTorch float32"]
    return [
        f"Largest relative errors of loss, gradients and next buffers against PyTorch in float64, over "
        "batches of three lengths: of the traced graph in float64, of the exported one in "
        f"ONNX Runtime, and of PyTorch itself in float32. Run of {run.date}: {versions}. Operators beside "
        f"{', '.join(plain)}.",
        table(columns, rows),
        "Not covered; each is refused with an error that names the operator:",
        table(["what", "why"], [[case.what, why] for case, why, _ in UNCOVERED.values()]),
    ]
