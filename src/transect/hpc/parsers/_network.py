"""What the parsers of network benchmarks share: columns, rounding, and how a run is stopped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from transect.domain.metrics import Direction
from transect.hpc.base import LogMetric, Parameter
from transect.hpc.block import TROUBLE, Block
from transect.hpc.rules import Output, RankParser, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, impossible, last_digit, log_metric, number

# Lines that say that a run was stopped, beyond `block.TROUBLE`.
STOPS = (
    r"\[\d{4}-\d\d-\d\dT[\d:.]{8,15}\] error:",
    r"srun: (?:Job step aborted|Force Terminated|forcing job termination)",
    r"\*\*\* (?:JOB|STEP) ",
    r"(?:mpirun|mpiexec|mpiexec\.hydra|prterun|orterun) (?:has exited|detected that)",
    r"Primary job[ \t]+terminated normally, but",
    r"(?:=>> )?PBS: job killed",
    r"TERM_(?:RUNLIMIT|MEMLIMIT|OWNER)",
    r"Program received signal",
    r'\{"timestamp":[\d.]{1,24},"name":"(?:exception|shell\.task-exit)"',
)

_STOP = re.compile("|".join((*STOPS, *TROUBLE)))
_NUMBER = re.compile(NUMBER)
_KILLED = re.compile(r"wait_status|\*\*\* STEP|[Kk]illed|Terminated|Aborted|[Ss]ignal|Segmentation fault|Bus error")
_FLUX_EXIT = re.compile(r'"wait_status":(\d{1,9})')


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the metric it becomes."""

    name: str
    unit: str
    registered: str | None = None
    direction: Direction | None = None


# What half a round trip of the smallest message is called.
LATENCY = Column("latency_smallest", "us", "network_latency")


def stop_of(text: str) -> str:
    """Return what a line says about the stop of a run, or an empty string."""
    if not _STOP.match(text):
        return ""
    if text.startswith("{"):
        # Flux writes a task-exit event for tasks that end well, too.
        match = _FLUX_EXIT.search(text)
        if match is not None and int(match[1]) == 0:
            return ""
        return excerpt(f"flux: task exit with wait_status {match[1]}" if match else text)
    return excerpt(text)


class NetworkOutput(Output):
    """The output of a network benchmark, with its launcher's messages about its end."""

    knows_width = True

    @rule(r".+", wanted="")
    def stopped(self, match: re.Match[str], line: Line) -> None:
        if stop := stop_of(match[0]):
            self.stop(stop)


class NetworkParser(RankParser):
    """Reads an output for each rank; a line that says why all stopped may have another label, or none."""

    also: ClassVar[tuple[str, ...]] = STOPS

    def is_stop(self, text: str) -> bool:
        """Tell whether a line says why a program stopped."""
        return bool(stop_of(text))


def killed(trouble: str) -> bool:
    """Tell whether the program itself died; a job may be cancelled long after its last program."""
    return _KILLED.search(trouble) is not None and "*** JOB" not in trouble


def is_number(text: str) -> bool:
    """Tell whether a cell is a number as C prints it, nan and inf included."""
    return _NUMBER.fullmatch(text) is not None


def cell_metric(column: Column, printed: str, *, size: int | None = None, phase: str | None = None) -> LogMetric | None:
    """Make a metric of a cell; None for nan.

    A printed zero is a value below the digits that were printed: it is kept but not normalised,
    for it is neither a time nor a rate.
    """
    registered = column.registered if number(printed) else None
    return log_metric(
        column.name, printed, column.unit, column.direction, registered=registered, size=size, phase=phase
    )


def agree(printed: str, low: float, high: float, slack: float = 1e-3) -> bool:
    """Tell whether a printed number may lie in [low, high], widened by a share of its ends."""
    mine_low, mine_high = last_digit(printed)
    return mine_high >= low - slack * abs(low) and mine_low <= high + slack * abs(high)


def between(low: str, middle: str, high: str) -> bool:
    """Tell whether three printed numbers may be in ascending order."""
    return last_digit(low)[0] <= last_digit(middle)[1] and last_digit(middle)[0] <= last_digit(high)[1]


def whole(line: Line, width: int) -> bool:
    """Tell whether a row is all there.

    The last line of a file without a line end may be a part of a row. These tables have columns
    of fixed width, so a whole row is as long as the one before it (or the header), `width`.
    """
    return not line.cut or len(line.text.rstrip()) >= width > 0


def twice(rows: Iterable[Hashable]) -> str:
    """Say that most rows of one table, by what each is of, stand more than once in it; empty when they do not."""
    counts = Counter(rows)
    again = sum(count > 1 for count in counts.values())
    if again * 2 <= len(counts):
        return ""
    return f"{again} of {len(counts)} rows stand more than once: did two programs print at once?"


@dataclass(kw_only=True, slots=True)
class Table:
    """A table as far as it has come: rows under named columns of fixed width."""

    line: int
    facts: dict[str, Parameter] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    width: int = 0
    rows: list[list[str]] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)  # since the last row
    warnings: list[str] = field(default_factory=list)
    cut: bool = False

    def place(self, *names: str) -> int:
        """Return where the first column of these names stands, -1 for nowhere."""
        return next((i for i, name in enumerate(self.columns) if name in names), -1)

    def last(self) -> int:
        """Return the message size of the last row, -1 when there is none."""
        place = self.place("Size", "#bytes")
        return int(self.rows[-1][place]) if self.rows and place >= 0 else -1

    def take(self, line: Line, cells: list[str], block: Block) -> bool:
        """Take in a row; False where it does not stand under the columns."""
        if len(cells) != len(self.columns) or not whole(line, self.width):
            if line.cut:
                self.cut = True
            elif len(cells) > 1 and len(self.warnings) < 5:
                self.warnings.append(f"line {line.number} has {len(cells)} cells under {len(self.columns)} columns")
            return False
        self.rows.append(cells)
        self.width = len(line.text.rstrip())
        # What was reported before a row did not stop the program.
        early = "; ".join(reason for reason in (*self.stops, block.take_trouble()) if reason)
        if early and len(self.warnings) < 5:
            self.warnings.append(f"before a row: {early}")
        self.stops = []
        return True

    def fill(
        self,
        metrics: list[LogMetric],
        column: Callable[[str], Column | None],
        wrong: Callable[[dict[str, str]], str],
        *,
        latency: bool,
    ) -> str:
        """Add the metrics of all rows; say what is wrong with the first wrong value.

        `wrong` recomputes what a row repeats; `latency`: the smallest message's time is the network's.
        """
        problem, nonzero, smallest = "", False, None
        known = [column(name) for name in self.columns]
        for cells in self.rows:
            row = dict(zip(self.columns, cells, strict=True))
            size = next((int(row[name]) for name in ("Size", "#bytes") if name in row), None)
            phase = f"group {row['Group']}" if "Group" in row else row.get("Operation")
            where = " ".join(part for part in (phase, "" if size is None else f"size {size}") if part) or "the row"
            for (name, printed), spec in zip(row.items(), known, strict=True):
                if printed == "Fail":
                    problem = problem or f"{where}: validation failed"
                if spec is None or not is_number(printed):
                    continue
                if (metric := cell_metric(spec, printed, size=size, phase=phase)) is None:
                    problem = problem or f"{where}: {name} is {printed}"
                    continue
                metrics.append(metric)
                # Repetitions are counted, not measured.
                measured = metric.direction is not Direction.NEUTRAL
                nonzero = nonzero or (measured and metric.value != 0)
                smallest = smallest or (metric if measured and size is not None else None)
                if spec.name != "overlap" and (why := impossible(metric)) is not None:
                    problem = problem or f"{where}: {why}"
            if not problem and (why := wrong(row)):
                problem = f"{where}: {why}"
        if metrics and not nonzero:
            problem = problem or "every value is zero"
        if latency and smallest is not None and (smallest.size or 0) <= 8:
            extra = cell_metric(LATENCY, smallest.printed, size=smallest.size)
            metrics += [extra] if extra else []
        return problem
