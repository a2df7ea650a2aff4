"""Runs as text, CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from typing import TextIO

from pydantic import TypeAdapter

from transect.domain.terminal import printable
from transect.hpc.base import Run

CSV_COLUMNS = (
    "file",
    "line",
    "benchmark",
    "variant",
    "version",
    "status",
    "reason",
    "metric",
    "phase",
    "size",
    "value",
    "unit",
    "direction",
    "normalised_metric",
    "normalised_value",
    "normalised_unit",
    "suspicions",
)

_RUNS = TypeAdapter(list[Run])
_SHOWN = 6


def format_table(runs: Sequence[Run]) -> str:
    """Lay runs out for a terminal: one line each, the reason below when there is one."""
    head = ("file:line", "benchmark", "variant", "version", "status", "metrics")
    rows = [
        (printable(f"{r.file}:{r.line}"), r.benchmark, r.variant, r.version, r.status.value, _metrics(r)) for r in runs
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(5)]
    lines = ["  ".join((*(h.ljust(w) for h, w in zip(head, widths, strict=False)), head[5]))]
    for run, row in zip(runs, rows, strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        lines.append("  ".join((*cells, row[5])).rstrip())
        lines += [f"    {run.reason}"] if run.reason else []
        lines += [f"    suspicious: {suspicion}" for suspicion in run.suspicions]
        lines += [f"    warning: {warning}" for warning in run.warnings]
    return "\n".join(map(printable, lines)) + "\n"


def _metrics(run: Run) -> str:
    chief = [m for m in run.metrics if m.normalised] or run.metrics
    shown = [f"{m.name} {m.printed} {m.unit}".removesuffix(" 1") for m in chief[:_SHOWN]]
    more = len(run.metrics) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


def write_csv(runs: Iterable[Run], stream: TextIO) -> None:
    """Write one row per metric; a run without metrics keeps one row, so that none is lost.

    A row is one line: what a terminal would obey in names is escaped. JSON has names as they are.
    """
    out = csv.writer(stream, lineterminator="\n")
    out.writerow(CSV_COLUMNS)
    for run in runs:
        about = (
            printable(run.file),
            run.line,
            run.benchmark,
            run.variant,
            run.version,
            run.status.value,
            printable(run.reason),
        )
        doubts = printable("; ".join(run.suspicions))
        for m in run.metrics:
            norm = m.normalised
            tail = (norm.name, repr(norm.value), norm.unit) if norm else ("", "", "")
            size = "" if m.size is None else m.size
            row = (*about, m.name, m.phase or "", size, m.printed, m.unit, m.direction.value)
            out.writerow((*row, *tail, doubts))
        if not run.metrics:
            out.writerow((*about, *[""] * (len(CSV_COLUMNS) - len(about) - 1), doubts))


def to_json(runs: Sequence[Run]) -> str:
    """Serialise as a JSON list; `runs_from_json` reads it back to equal runs."""
    # ASCII: a terminal may take other characters for orders.
    return json.dumps(_RUNS.dump_python(list(runs), mode="json"), indent=1) + "\n"


def runs_from_json(text: str | bytes) -> list[Run]:
    """Read what `to_json` wrote. Raises pydantic.ValidationError when it is something else."""
    return _RUNS.validate_json(text)
