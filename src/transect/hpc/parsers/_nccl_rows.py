"""Tables of nccl-tests: header, units, rows with empty cells, and the formulas of the rates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import LogMetric, Parameter
from transect.hpc.parsers._network import Column, agree, cell_metric, is_number
from transect.hpc.values import last_digit, number

_HEADER = re.compile(r"#\s+(?:size|bytes)(?:\(B\))?\s+(?:count|N)\b")
_STAMP = re.compile(r"\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
_TIMES = ("time", "cputime")
_SIZES = re.compile(r"[0-9]{1,19}\s+[0-9]{1,19}\s")
# A line of NCCL itself. It may begin right behind a number: no host's name begins with one here.
_INFO = re.compile(
    r"(?:\[[\w.\-@,]{1,120}\](?:<\w{6}>)?:|\[\d{4}-\d\d-\d\d [^\]]{1,30}\] )?"
    r"[A-Za-z][\w.\-]{0,79}:\d{1,9}:\d{1,9} \[\d{1,5}\] [NR]CCL [A-Z]"
)
_WRONG = ("#wrong", "error", "res")
# Bus over algorithm bandwidth, of n ranks (nccl-tests, doc/PERFORMANCE.md).
_SHARE = ("all_gather", "reduce_scatter", "alltoall", "alltoallv", "alltoallv2", "gather", "scatter")


@dataclass(frozen=True, slots=True)
class Side:
    """One half of a row, out of place or in place: cells by the header's names, without the common columns."""

    phase: str
    cells: dict[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """A row; `size` and `count` as printed, of which the first is in bytes."""

    size: int
    count: int
    kind: dict[str, str]  # type, redop, root: those that are not empty
    sides: tuple[Side, ...]


@dataclass(kw_only=True, slots=True)
class Test:
    """What one start of a test program has printed so far."""

    line: int
    variant: str = "nccl"
    version: str = ""
    op: str = ""
    settings: dict[str, Parameter] = field(default_factory=dict)
    facts: dict[str, Parameter] = field(default_factory=dict)
    ranks: dict[int, set[int]] = field(default_factory=dict)
    pids: set[str] = field(default_factory=set)
    columns: list[str] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=lambda: {"time": "us", "bw": "GB/s"})
    width: int = 0
    rows: list[Row] = field(default_factory=list)
    piece: str = ""  # of a row that other output has cut: what of it has come
    mixed: bool = False
    lost: int = 0
    bounds: tuple[str, str] | None = None
    mean: str = ""
    rumour: str = ""
    failures: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    early: str = ""
    cut: bool = False
    warnings: list[str] = field(default_factory=list)

    def started(self) -> bool:
        return bool(self.version or self.op or self.settings or self.ranks or self.columns or self.rows)

    def just_started(self) -> bool:
        """Tell whether it may still be waiting for the list of its devices."""
        return self.started() and not (self.ranks or self.columns or self.failures or self.stops)

    def pieced(self, text: str) -> Row | None:
        """Take in a piece of a row, which ends where NCCL's own output begins; return the row when it is whole.

        The program prints what it measures, then each half, and NCCL (NCCL_DEBUG=INFO) writes lines of its own between.
        """
        info = _INFO.search(text)
        text = text[: info.start()] if info else text
        if info and (found := row(text, self.columns)) is not None:
            return found
        cells = text.split(None, 40)
        if len(cells) >= 3 and _SIZES.match(text) and not is_number(cells[2]):
            # No larger one while the last is not over: two programs print at once, and no half tells whose it is.
            before = self.piece.split(None, 1)[:1]
            self.mixed = self.mixed or bool(before and int(cells[0]) <= int(before[0]))
            self.lost += bool(self.piece) or not info or self.mixed
            self.piece = text if info and not self.mixed else ""
            return None
        half = sum(name != "timestamp" for name in self.columns[_first(self.columns) :])
        half //= max(1, sum(name in _TIMES for name in self.columns))
        if not self.piece or len(cells) % half:
            return None
        self.piece = f"{self.piece} {text}"
        whole = row(self.piece, self.columns)
        if whole is not None:
            self.piece = ""
        return whole

    def ended(self) -> bool:
        """Tell whether the summary under the table has come."""
        return bool(self.mean)

    def size(self) -> int:
        """Return the ranks of one communicator, 0 when the log does not say."""
        # A long list of devices is cut short in the log: the highest rank counts.
        if len(self.ranks) == 1:
            return max(next(iter(self.ranks.values()))) + 1
        return max((len(ranks) for ranks in self.ranks.values()), default=0)

    def whole(self) -> bool:
        """Tell whether the table has as many rows as its settings announce, or a multiple."""
        low, high, step = (self.settings.get(k) for k in ("minBytes", "maxBytes", "step"))
        if not (isinstance(low, int) and isinstance(high, int) and isinstance(step, int)):
            return False
        expected, size = 0, low
        while size <= high and expected < 10_000 and step > 0:
            expected += 1
            larger = size * step if self.settings["step_type"] == "factor" else size + step
            if larger <= size:
                break
            size = larger
        return expected > 0 and bool(self.rows) and len(self.rows) % expected == 0


def header(text: str) -> list[str]:
    """Return the names of the columns when a line is the header of a table, else nothing."""
    if not _HEADER.match(text):
        return []
    names = text.lstrip("# ").split(None, 30)[:30]
    names = [re.sub(r"\((?:B|us|GB/s|elements|elems)\)$", "", name) for name in names]
    return names if "busbw" in names and any(t in names for t in _TIMES) else []


def units(text: str) -> dict[str, str]:
    """Read the line of units under the header; empty when it is none."""
    if not text.lstrip("# ").startswith("(B)"):
        return {}
    time = next((u for u in ("us", "ms", "s") if f"({u})" in text), "us")
    rate = next((u for u in ("GB/s", "MB/s", "GiB/s") if f"({u})" in text), "GB/s")
    return {"time": time, "bw": rate}


def _first(columns: list[str]) -> int:
    return next(i for i, name in enumerate(columns) if name in _TIMES)


def row(text: str, columns: list[str]) -> Row | None:
    """Read a row; None when it is not one.

    The cells of `redop` and `root` may be empty: numbers are counted from the right.
    """
    cells = _STAMP.sub("", text[:600]).split(None, 40)[:40]
    columns = [name for name in columns if name != "timestamp"]
    first = _first(columns)
    stats = columns[first:]
    if len(cells) < len(stats) + 3:
        return None
    lead = cells[: len(cells) - len(stats)]
    if len(lead) > max(first, 5) or not (lead[0].isdecimal() and lead[1].isdecimal()):
        return None
    if len(lead[0]) > 19 or len(lead[1]) > 19 or not lead[0].isascii() or not lead[1].isascii():
        return None
    tail = cells[len(cells) - len(stats) :]
    if not all(is_number(c) or c == "N/A" or c.endswith("*") for c in tail):
        return None
    starts = [i for i, name in enumerate(stats) if name in _TIMES]
    ends = [*starts[1:], len(stats)]
    sides = tuple(
        Side(phase, dict(zip(stats[a:b], tail[a:b], strict=True)))
        for phase, a, b in zip(("out-of-place", "in-place"), starts, ends, strict=False)
    )
    if any("busbw" not in side.cells or "algbw" not in side.cells for side in sides):
        return None
    return Row(int(lead[0]), int(lead[1]), _kind(lead[2:]), sides)


def _kind(cells: list[str]) -> dict[str, str]:
    kind = {"type": cells[0][:20]}
    for cell in cells[1:]:
        kind["root" if cell.lstrip("-").isdecimal() else "redop"] = cell[:20]
    return kind


def metrics(row: Row, side: Side, unit: dict[str, str], *, alone: bool) -> Iterator[LogMetric]:
    """Yield the numbers of one half of a row. `alone`: all rows are of one type and operation."""
    phase = side.phase if alone else " ".join((side.phase, *row.kind.values()))
    time, registered = unit["time"], {"time": "collective_time", "busbw": "collective_bandwidth"}
    for name, printed in side.cells.items():
        if name in ("algbw", "busbw"):
            column = Column(name, unit["bw"], registered.get(name))
        elif name in (*_TIMES, *_WRONG) or name.startswith("i_"):
            of = "1" if name in _WRONG else "%" if name.endswith("%") else time
            column = Column(name, of, registered.get(name), Direction.LOWER)
        else:
            continue
        if is_number(printed) and (metric := cell_metric(column, printed, size=row.size, phase=phase)):
            yield metric


def average(printed: str) -> LogMetric | None:
    """Make the metric of the last line, a mean over all sizes and both halves."""
    column = Column("avg_busbw", "GB/s", "collective_bandwidth")
    return cell_metric(column, printed, phase="average")


def wrong(op: str, ranks: int, row: Row, side: Side, unit: dict[str, str]) -> str:
    """Say what is wrong with one half of a row, or return an empty string."""
    cells = side.cells
    time, algbw, busbw = cells.get("time", ""), cells["algbw"], cells["busbw"]
    for name, printed in cells.items():
        if printed != "N/A" and number(printed.rstrip("*")) is None:
            return f"{name} is {printed}"
    count = number(cells.get("#wrong", "0")) if cells.get("#wrong") != "N/A" else 0
    if count:
        return f"{cells['#wrong']} wrong values"
    name = op.removesuffix("_mpi").removesuffix("_perf")
    factor = _factor(name, ranks)
    if factor is not None:
        low, high = (end * factor for end in last_digit(algbw))
        if not agree(busbw, low, high, 5e-3):
            return (
                f"the log prints a bus bandwidth of {busbw}, but {algbw} of algorithm bandwidth "
                f"times {factor:.6g} ({name}, {ranks} ranks) is {(number(algbw) or 0) * factor:.6g}"
            )
    if time and name != "hypercube" and unit == {"time": "us", "bw": "GB/s"}:
        low_t, high_t = last_digit(time)
        if low_t > 0 and not agree(algbw, row.size / high_t / 1e3, row.size / low_t / 1e3, 5e-3):
            return (
                f"the log prints {algbw} GB/s, but its size over its time of {time} us is "
                f"{row.size / (number(time) or 1) / 1e3:.6g} GB/s"
            )
    return ""


def _factor(op: str, ranks: int) -> float | None:
    if ranks < 1:
        return None
    if op == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if op in _SHARE:
        return (ranks - 1) / ranks
    return 1.0 if op in ("broadcast", "reduce", "sendrecv", "hypercube") else None
