"""What the parsers of network benchmarks share: columns, rounding, and how a run is stopped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from transect.domain.metrics import Direction
from transect.hpc.base import LogMetric
from transect.hpc.block import TROUBLE
from transect.hpc.rules import Output, RankParser, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, last_digit, log_metric, number

# More rows of one table than any of these benchmarks prints, and more ranks than one file labels:
# what comes after is counted, not kept.
MAX_ROWS = 2000

# Programs that print into one file at the same time, without labels.
MAX_TOGETHER = 64

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
    """What a program on a network prints, and what its launcher says of its end."""

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
