"""Tables of the Intel MPI Benchmarks and what they yield."""

from __future__ import annotations

from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import LogMetric, Parameter
from transect.hpc.parsers import _imb_names as names
from transect.hpc.parsers._network import LATENCY, cell_metric
from transect.hpc.values import impossible, number


@dataclass(kw_only=True, slots=True)
class Suite:
    """What one start of the program says about all of its tables."""

    line: int
    version: str = ""
    part: str = ""
    facts: dict[str, Parameter] = field(default_factory=dict)
    limit: int = 0
    listing: bool = False
    listed: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    ended: bool = False


@dataclass(kw_only=True, slots=True)
class Table:
    """One table, as far as it has come."""

    line: int
    test: str = ""
    multi: bool = False
    facts: dict[str, Parameter] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    width: int = 0
    rows: list[list[str]] = field(default_factory=list)
    more: int = 0
    skipped: list[str] = field(default_factory=list)
    cut: bool = False
    stops: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def last(self) -> int:
        """Return the size of the last row, -1 when there is none."""
        place = self.columns.index("#bytes") if "#bytes" in self.columns else -1
        return int(self.rows[-1][place]) if self.rows and place >= 0 else -1


def fill(table: Table, suite: Suite, unit: str, metrics: list[LogMetric]) -> str:
    """Add the metrics of a table; say what is wrong with the first wrong value."""
    problem, nonzero = "", False
    known = [names.column(name, table.test, suite.part, unit) for name in table.columns]
    for cells in table.rows:
        row = dict(zip(table.columns, cells, strict=True))
        size = int(row["#bytes"]) if "#bytes" in row else None
        phase = f"group {row['Group']}" if "Group" in row else None
        where = " ".join(w for w in (phase, f"size {size}" if size is not None else "") if w)
        for name, column in zip(table.columns, known, strict=True):
            if column is None:
                continue
            metric = cell_metric(column, row[name], size=size, phase=phase)
            if metric is None:
                problem = problem or f"{where}: {name} is {row[name]}"
                continue
            metrics.append(metric)
            # Repetitions are counted, not measured.
            measured = metric.direction is not Direction.NEUTRAL
            nonzero = nonzero or (measured and metric.value != 0)
            if column.name != "overlap" and (why := impossible(metric)) is not None:
                problem = problem or f"{where}: {why}"
        if not problem and (why := names.contradiction(row)):
            problem = f"{where}: {why}"
        if not problem and (number(row.get("defects", "0")) or 0.0) > 0:
            problem = f"{where}: {row['defects']} defects in what was received"
    if metrics and not nonzero:
        problem = problem or "every value is zero"
    smallest = next((m for m in metrics if m.name == "t" and m.size is not None), None)
    if smallest is not None and (smallest.size or 0) <= 8 and table.test.lower() == "pingpong":
        extra = cell_metric(LATENCY, smallest.printed, size=smallest.size)
        metrics += [extra] if extra else []
    return problem
