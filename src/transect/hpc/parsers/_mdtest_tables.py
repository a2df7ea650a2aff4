"""What one run of mdtest printed, and whether its numbers can be true together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from transect.hpc.parsers._checks import apart, span
from transect.hpc.rules import Output
from transect.hpc.values import number

COLUMNS = ("max", "min", "mean", "stddev")


@dataclass(kw_only=True, slots=True)
class Table:
    """One summary table: operation -> max, min, mean, standard deviation as printed."""

    line: int
    kind: str
    label: str
    iterations: int
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(kw_only=True)
class Tables(Output):
    """What one start of the program printed."""

    items: int = 0
    headed: bool = False
    tables: list[Table] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    unverified: str = ""

    def table(self, kind: str) -> Table | None:
        """Return the first table of that kind that has rows."""
        return next((t for t in self.tables if t.kind == kind and t.rows), None)


def unit_of(table: Table, output: Tables) -> str:
    """Return the unit of a table: of times it is found from the rates and the number of items."""
    if table.kind == "rate":
        return "1/s"
    rates = output.table("rate")
    if table.label == "ms/op" and rates is not None:
        for operation, row in table.rows.items():
            rate, time = number(rates.rows.get(operation, ("",))[0]), number(row[1])
            if rate and time and time >= 0.01 and abs(rate * time / 1000 - 1) < 0.1:
                # Either a time per operation in ms, or 1000 items in seconds.
                return "s" if output.items == 1000 else "ms"
    return "s"


def broken(printed: str) -> bool:
    """Tell whether a cell is neither a number nor `-`, e.g. nan."""
    return printed != "-" and number(printed) is None


def wrong(table: Table, operation: str, row: tuple[str, ...], tasks: int) -> str | None:
    """Say what is wrong within one row, or return None. `tasks`: 0 where the log does not say."""
    label = f"{operation} ({table.kind})"
    for column, printed in zip(COLUMNS, row, strict=True):
        # One iteration has no deviation: some versions print nan.
        if broken(printed) and not (column == "stddev" and table.iterations == 1):
            return f"{label}: {column} is {printed}"
        if (number(printed) or 0.0) < 0:
            return f"{label}: {column} = {printed} is negative"
    most, least, mean, deviation = (span(printed) for printed in row)
    if most is None or least is None or mean is None:
        return None
    if least[0] > most[1] * (1 + 1e-6) or apart((least[0], most[1]), mean, 1e-6):
        return f"{label}: the mean {row[2]} is not between min {row[1]} and max {row[0]}"
    if deviation is None:
        return None
    wide = most[1] - least[0]
    if deviation[0] > 0.7072 * wide + 1e-6 * most[1]:
        return f"{label}: Std Dev {row[3]} is more than max {row[0]} and min {row[1]} allow"
    # The deviation of n values is at least their range over sqrt(2 n): 1.9 takes it over iterations and tasks.
    values = 2 * table.iterations * tasks
    if values and most[0] - least[1] > deviation[1] * values**0.5 + 1e-6 * most[1]:
        return f"{label}: Std Dev {row[3]} is less than max {row[0]} and min {row[1]} of {values // 2} values allow"
    return None


def contradicted(output: Tables) -> str | None:
    """Compare rate times time with the number of items, for one iteration of a plain run."""
    rates, times = output.table("rate"), output.table("time")
    command = str(output.facts.get("command", ""))
    # A stonewall ends the phase early; -S lets all tasks use one file.
    if rates is None or times is None or rates.iterations != 1 or not output.items:
        return None
    if re.search(r"(?:^|[\s'\"])-(?:W|x|S|Y)", command) or unit_of(times, output) != "s":
        return None
    for operation, row in rates.rows.items():
        rate, time = span(row[0]), span(times.rows.get(operation, ("",) * 4)[1])
        if operation.startswith("Tree") or rate is None or time is None or time[0] < 0:
            continue
        items = float(output.items)
        if number(row[0]) and apart((rate[0] * time[0], rate[1] * time[1]), (items, items), 0.1):
            seconds = times.rows[operation][1]
            return (
                f"{operation}: the log prints {row[0]} 1/s, but its {output.items} items "
                f"over its time of {seconds} s are {items / (number(seconds) or 1):.6g} 1/s"
            )
    return None
