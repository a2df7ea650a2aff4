"""The lines of BabelStream logs: its text table, its CSV, and the list of the Mojo port."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from transect.hpc.parsers._checks import whole
from transect.hpc.rules import Output, notes, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

# Arrays that a kernel moves, as main.cpp counts.
KERNELS = {"copy": 2, "mul": 2, "add": 3, "triad": 3, "dot": 2, "nstream": 4}
_LABELS = "Copy|Mul|Add|Triad|Dot|Nstream"
_HEAD = re.compile(r"(BabelStream|GPU-STREAM)(?: Fortran)?$")
_UNIT = r"([KMGT]i?)B(?:ytes)?/s(?:ec)?"
_ROW = re.compile(rf"({_LABELS})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s*$")
# A rate of 12 digits fills its column, and the time follows without a blank.
_CSV_UNIT = re.compile(r"(?:max_)?([kmgt]i?)(?:bytes|b)_per_sec$")
_LIST_VALUE = re.compile(rf"(Min|Max|Avg|Bandwidth) \((sec|{_UNIT})\):\s*({NUMBER})\s*$")
_ONLY_RATE = re.compile(rf"Bandwidth \({_UNIT}\):\s*({NUMBER})")
_USAGE = re.compile(
    r"Unrecognized argument '(--(?:triad-only|nstream-only|mibibytes|gigabytes|numtimes|arraysize"
    r"|float|order|only|megabytes|gibibytes|print-names|run-names))'"
)


def usage_error(text: str) -> bool:
    """Tell whether a line refuses an option; only options that no other program here has."""
    return _USAGE.match(text) is not None


@dataclass(kw_only=True, slots=True)
class Row:
    """One kernel of a table: digits as printed."""

    rate: str = ""
    unit: str = "MB/s"
    fastest: str = ""
    slowest: str = ""
    mean: str = ""
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Table:
    """One table of results: a run."""

    line: int
    layout: str
    unit: str = "MB/s"
    columns: tuple[str, ...] = ()
    rows: dict[str, Row] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def _columns(text: str) -> tuple[str, ...]:
    columns = tuple(name.strip().lower() for name in text.split(","))[:20]
    rated = any(_CSV_UNIT.match(column) for column in columns)
    return columns if rated and "n_elements" in columns else ()


@dataclass(kw_only=True)
class Printed(Output):
    """What one rank (or all of them, without rank labels) has printed so far."""

    program: str = ""
    setup: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    heads: int = 0
    tables: list[Table] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    refused: str = ""
    kernel: str = ""  # of the list layout
    runtime: str = ""

    def whole(self) -> bool:
        """Tell whether every run that was begun has a table, and all tables the same rows."""
        return (
            bool(self.tables)
            and len(self.tables) >= self.heads
            and all(t.rows and len(t.rows) == len(self.tables[0].rows) for t in self.tables)
        )

    def begins(self, text: str) -> bool:
        """Tell whether a line begins the next run: a head or, in the ports without, a size."""
        if _HEAD.match(text) or usage_error(text):
            begun = any(t.rows for t in self.tables)
            return bool(self.refused) or self.whole() or (begun and self.heads <= 1)
        if text.startswith("GPU:") or (text.startswith("Array size:") and not self.heads):
            return any(t.rows for t in self.tables)
        return text.startswith("function,") and self.whole()

    def read(self, line: Line, text: str) -> None:
        """Take in one line; of a last one without a line end the last number may be half of one."""
        if line.cut and self.tables and self.tables[-1].columns:
            return  # numbers of CSV have as many digits as they need
        value = _LIST_VALUE.match(text) if line.cut and self.kernel else None
        if value is None or not value[3]:
            super().read(line, text)
            return
        # The last line of this port has no line end.
        super().read(replace(line, cut=False), text)
        for table in self.tables:
            if self.kernel in table.rows:
                table.rows[self.kernel].facts["cut"] = text

    def _add(self, table: Table) -> None:
        table.failures, self.failures = self.failures, []
        self.tables.append(table)

    def _open(self, line: Line, kernel: str, layout: str) -> Table | None:
        """Return the first table that lacks this kernel."""
        for table in self.tables:
            if table.layout == layout and kernel not in table.rows:
                return table
        unit = self.tables[0].unit if self.tables else "MB/s"
        if layout == "csv":
            return None
        self._add(Table(line=line.number, layout=layout, unit=unit))
        return self.tables[-1]

    @rule(_HEAD, wanted="")
    def head(self, match: re.Match[str], line: Line) -> None:
        self.program = match[1]
        self.heads += 1

    @rule(rf"Function\s+{_UNIT}\s+Min", wanted="")
    def table(self, match: re.Match[str], line: Line) -> None:
        self._add(Table(line=line.number, layout="text", unit=f"{match[1]}B/s"))

    # Rows of CSV begin with a kernel too.
    @rule(_ROW, wanted=rf"(?:{_LABELS})(?:[ \t]|,|:)")
    @rule(
        rf"({_LABELS})\s+(\d{{1,15}}\.\d{{3}})\s*(\d{{1,9}}\.\d{{5}})\s*(\d{{1,9}}\.\d{{5}})"
        r"\s*(\d{1,9}\.\d{5})\s*$",
        wanted="",
    )
    def row(self, match: re.Match[str], line: Line) -> None:
        self._add_row(line, match[1].lower(), match.groups()[1:])

    def _add_row(self, line: Line, kernel: str, cells: tuple[str, ...]) -> None:
        table = self._open(line, kernel, "text")
        if table is not None:
            rate, fastest, slowest, mean = cells
            table.rows[kernel] = Row(rate=rate, unit=table.unit, fastest=fastest, slowest=slowest, mean=mean)

    @rule(r"function.*", re.IGNORECASE, wanted="")
    def csv_head(self, match: re.Match[str], line: Line) -> bool:
        if columns := _columns(match[0]):
            self._add(Table(line=line.number, layout="csv", columns=columns))
        return bool(columns)

    @rule(r"(?:[^,]*,){4}", wanted="")
    def csv_row(self, match: re.Match[str], line: Line) -> bool:
        if not (self.tables and self.tables[-1].columns):
            return False
        self._add_csv(match.string)
        return True

    def _add_csv(self, text: str) -> None:
        cells = [cell.strip() for cell in text.split(",")[:20]]
        kernel = cells[0].lower()
        if kernel not in KERNELS:
            return
        table = next((t for t in self.tables if t.columns and kernel not in t.rows), None)
        if table is None or len(cells) < len(table.columns):
            return
        named = dict(zip(table.columns, cells, strict=False))
        row = Row(facts={k: named[k] for k in ("num_times", "n_elements", "sizeof") if k in named})
        for column, value in named.items():
            if (unit := _CSV_UNIT.match(column)) is not None:
                row.rate, row.unit = value, f"{unit[1].upper().replace('I', 'i')}B/s"
        row.fastest = named.get("min_runtime", named.get("runtime", ""))
        row.slowest, row.mean = named.get("max_runtime", ""), named.get("avg_runtime", "")
        if "runtime" in named:
            row.facts["total"] = row.fastest  # of all repetitions: --triad-only
        table.rows[kernel] = row

    @rule(r"Validation failed.*")
    def failed(self, match: re.Match[str], line: Line) -> None:
        """Keep a failed validation: of the run whose table is to come, or of the last one."""
        open_run = len(self.tables) < self.heads or not self.tables
        kept = self.failures if open_run else self.tables[-1].failures
        kept.append(excerpt(match[0]))

    @rule(_USAGE, wanted="")
    def usage(self, match: re.Match[str], line: Line) -> None:
        self.refused = excerpt(match.string)

    @rule(rf"({_LABELS})\s*:\s*$", wanted="")
    def list_kernel(self, match: re.Match[str], line: Line) -> None:
        """Take a kernel of the Mojo port; its times and its rate stand on lines of their own."""
        self.kernel = match[1].lower()
        if (table := self._open(line, self.kernel, "list")) is not None:
            table.rows[self.kernel] = Row(unit="GB/s")

    @rule(_LIST_VALUE)
    def list_value(self, match: re.Match[str], line: Line) -> bool:
        if not self.kernel:
            return False
        table = next((t for t in reversed(self.tables) if self.kernel in t.rows), None)
        if table is not None:
            row = table.rows[self.kernel]
            if match[3]:
                row.rate, row.unit = match[4], f"{match[3]}B/s"
            elif name := {"Min": "fastest", "Max": "slowest", "Avg": "mean"}.get(match[1]):
                setattr(row, name, match[4])
        return True

    @rule(r"Runtime \(seconds\):\s*(\d{1,12}\.\d{1,5})")
    def only(self, match: re.Match[str], line: Line) -> None:
        """Read --triad-only: one time for all repetitions; the Java port omits the line end."""
        self.runtime = match[1]
        self._only_rate(line, match.string)

    @rule(_ONLY_RATE)
    def only_rate(self, match: re.Match[str], line: Line) -> bool:
        return self._only_rate(line, match.string)

    def _only_rate(self, line: Line, text: str) -> bool:
        rate = _ONLY_RATE.search(text, 0, 200) if self.runtime else None
        if rate is not None:
            self._add(Table(line=line.number, layout="triad-only", unit=f"{rate[1]}B/s"))
            row = Row(rate=rate[2], unit=f"{rate[1]}B/s", fastest=self.runtime)
            row.facts["total"] = self.runtime
            self.tables[-1].rows["triad"] = row
            self.runtime = ""
        return rate is not None

    @rule(rf"(Init|Read):\s*({NUMBER})\s*s\s*\(=?\s*({NUMBER})\s*{_UNIT}\)")
    def setup_time(self, match: re.Match[str], line: Line) -> None:
        self.setup[match[1].lower()] = (match[2], match[3], f"{match[4]}B/s")

    @rule(r"(Array|Total) size:\s*(\d{1,15}(?:\.\d{1,9})?|\d{1,3}\.\d{1,9}[eE]\+?\d{1,2})\s*([KMGT]i?B)")
    def size(self, match: re.Match[str], line: Line) -> None:
        if (value := number(match[2])) is not None:
            self.facts[f"{match[1].lower()}_size"] = value
            self.facts[f"{match[1].lower()}_size_unit"] = match[3]

    @rule(r"(Version|Implementation|Precision|Driver|Memory|Number of elements|GPU):\s*(\S.*)$")
    def fact(self, match: re.Match[str], line: Line) -> None:
        key = match[1].lower().replace(" ", "_")
        count = whole(match[2].strip())
        self.facts[key] = count if key == "number_of_elements" and count else excerpt(match[2])

    @rule(r"Running\s+(.{1,60}?)\s*(\d{1,12}) times")
    def times(self, match: re.Match[str], line: Line) -> None:
        self.facts["kernels"], self.facts["num_times"] = " ".join(match[1].split()), int(match[2])
        order = re.search(r"times in\s+(\w{1,20}) order", match.string)
        if order is not None:
            self.facts["order"] = order[1]

    device = notes(r"Using (.{1,40}?) ?device:?\s+(\S.*)$", "device", group=2)
