"""The lines of BabelStream logs: its text table, its CSV, and the list of the Mojo port."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from transect.hpc.base import Parameter
from transect.hpc.parsers._compute import whole
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

KERNELS = {"copy": 2, "mul": 2, "add": 3, "triad": 3, "dot": 2, "nstream": 4}
_LABELS = "Copy|Mul|Add|Triad|Dot|Nstream"
_HEAD = re.compile(r"(BabelStream|GPU-STREAM)(?: Fortran)?$")
_UNIT = r"([KMGT]i?)B(?:ytes)?/s(?:ec)?"
_TABLE = re.compile(rf"Function\s+{_UNIT}\s+Min")
_ROW = re.compile(rf"({_LABELS})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s*$")
# A rate of 12 digits fills its column, and the time follows without a blank.
_PACKED = re.compile(
    rf"({_LABELS})\s+(\d{{1,15}}\.\d{{3}})\s*(\d{{1,9}}\.\d{{5}})\s*(\d{{1,9}}\.\d{{5}})"
    r"\s*(\d{1,9}\.\d{5})\s*$"
)
_CSV_UNIT = re.compile(r"(?:max_)?([kmgt]i?)(?:bytes|b)_per_sec$")
_LIST_KERNEL = re.compile(rf"({_LABELS})\s*:\s*$")
_LIST_VALUE = re.compile(rf"(Min|Max|Avg|Bandwidth) \((sec|{_UNIT})\):\s*({NUMBER})\s*$")
_ONLY = re.compile(r"Runtime \(seconds\):\s*(\d{1,12}\.\d{1,5})")
_ONLY_RATE = re.compile(rf"Bandwidth \({_UNIT}\):\s*({NUMBER})")
_FACT = re.compile(r"(Version|Implementation|Precision|Driver|Memory|Number of elements|GPU):\s*(\S.*)$")
_SIZE = re.compile(r"(Array|Total) size:\s*(\d{1,15}(?:\.\d{1,9})?|\d{1,3}\.\d{1,9}[eE]\+?\d{1,2})\s*([KMGT]i?B)")
_TIMES = re.compile(r"Running\s+(.{1,60}?)\s*(\d{1,12}) times")
_DEVICE = re.compile(r"Using (.{1,40}?) ?device:?\s+(\S.*)$")
_SETUP = re.compile(rf"(Init|Read):\s*({NUMBER})\s*s\s*\(=?\s*({NUMBER})\s*{_UNIT}\)")
_USAGE = re.compile(
    r"Unrecognized argument '(--(?:triad-only|nstream-only|mibibytes|gigabytes|numtimes|arraysize"
    r"|float|order|only|megabytes|gibibytes|print-names|run-names))'"
)
MOST_TABLES = 1024
# Rows of CSV begin with a kernel too.
RULES = (
    rf"(?:{_LABELS})(?:[ \t]|,|:)",
    *searched(_LIST_VALUE, _ONLY, _ONLY_RATE, _FACT, _SIZE, _TIMES, _DEVICE, _SETUP),
)


def head(text: str) -> bool:
    """Tell whether a line is the name that the program prints first."""
    return _HEAD.match(text) is not None


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


@dataclass(slots=True)
class Output:
    """What one rank (or all of them, without rank labels) has printed so far."""

    line: int = 0
    program: str = ""
    facts: dict[str, Parameter] = field(default_factory=dict)
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


def read(output: Output, line: Line, text: str) -> None:
    """Take in one line."""
    if line.cut:
        _read_cut(output, line, text)
    elif (match := _HEAD.match(text)) is not None:
        output.program = match[1]
        output.heads += 1
    elif (match := _TABLE.match(text)) is not None:
        _add(output, Table(line=line.number, layout="text", unit=f"{match[1]}B/s"))
    elif (match := _ROW.match(text) or _PACKED.match(text)) is not None:
        _row(output, line, match[1].lower(), match.groups()[1:])
    elif text.lower().startswith("function") and (columns := _columns(text)):
        _add(output, Table(line=line.number, layout="csv", columns=columns))
    elif output.tables and output.tables[-1].columns and text.count(",") >= 4:
        _csv_row(output, text)
    elif text.startswith("Validation failed"):
        _failed(output, excerpt(text))
    elif usage_error(text):
        output.refused = excerpt(text)
    elif not (_list(output, line, text) or _only(output, line, text)):
        _fact(output, text)


def _read_cut(output: Output, line: Line, text: str) -> None:
    """Take in a last line without a line end: its last number may be half of one."""
    if (match := _ROW.match(text)) is not None:
        _row(output, line, match[1].lower(), (*match.groups()[1:4], ""))
    elif output.tables and output.tables[-1].columns and text.count(",") >= 4:
        cells = text.split(",")
        if len(cells) == len(output.tables[-1].columns):
            _csv_row(output, ",".join([*cells[:-1], ""]))
    elif (only := _ONLY_RATE.search(text, 0, 200)) is not None and output.runtime:
        if re.search(r"\.\d{3}$", only[2]):  # this program prints three decimals
            _only(output, line, text)
    elif (match := _LIST_VALUE.match(text)) is not None and match[3]:
        _list(output, line, text)
        for table in output.tables:
            if output.kernel in table.rows:
                table.rows[output.kernel].facts["cut"] = text


def _add(output: Output, table: Table) -> None:
    if len(output.tables) < MOST_TABLES:
        table.failures, output.failures = output.failures, []
        output.tables.append(table)


def _failed(output: Output, text: str) -> None:
    """Keep a failed validation: of the run whose table is to come, or of the last one."""
    open_run = len(output.tables) < output.heads or not output.tables
    kept = output.failures if open_run else output.tables[-1].failures
    if len(kept) < 4:
        kept.append(text)


def _open(output: Output, line: Line, kernel: str, layout: str) -> Table | None:
    """Return the first table that lacks this kernel."""
    for table in output.tables:
        if table.layout == layout and kernel not in table.rows:
            return table
    unit = output.tables[0].unit if output.tables else "MB/s"
    if len(output.tables) >= MOST_TABLES or layout == "csv":
        return None
    _add(output, Table(line=line.number, layout=layout, unit=unit))
    return output.tables[-1]


def _row(output: Output, line: Line, kernel: str, cells: tuple[str, ...]) -> None:
    table = _open(output, line, kernel, "text")
    if table is not None:
        rate, fastest, slowest, mean = cells
        table.rows[kernel] = Row(rate=rate, unit=table.unit, fastest=fastest, slowest=slowest, mean=mean)


def _columns(text: str) -> tuple[str, ...]:
    columns = tuple(one.strip().lower() for one in text.split(","))[:20]
    rated = any(_CSV_UNIT.match(one) for one in columns)
    return columns if rated and "n_elements" in columns else ()


def _csv_row(output: Output, text: str) -> None:
    cells = [one.strip() for one in text.split(",")[:20]]
    kernel = cells[0].lower()
    if kernel not in KERNELS:
        return
    table = next((t for t in output.tables if t.columns and kernel not in t.rows), None)
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


def _list(output: Output, line: Line, text: str) -> bool:
    """Read the Mojo port: a kernel, then its times and its rate on lines of their own."""
    if (match := _LIST_KERNEL.match(text)) is not None:
        output.kernel = match[1].lower()
        if (table := _open(output, line, output.kernel, "list")) is not None:
            table.rows[output.kernel] = Row(unit="GB/s")
        return True
    if not output.kernel or (match := _LIST_VALUE.match(text)) is None:
        return False
    table = next((t for t in reversed(output.tables) if output.kernel in t.rows), None)
    if table is not None:
        row = table.rows[output.kernel]
        if match[3]:
            row.rate, row.unit = match[4], f"{match[3]}B/s"
        else:
            name = {"Min": "fastest", "Max": "slowest", "Avg": "mean"}.get(match[1])
            if name:
                setattr(row, name, match[4])
    return True


def _only(output: Output, line: Line, text: str) -> bool:
    """Read --triad-only: one time for all repetitions; the Java port omits the line end."""
    seconds = _ONLY.match(text)
    if seconds is not None:
        output.runtime = seconds[1]
    rate = _ONLY_RATE.search(text, 0, 200) if output.runtime else None
    if rate is not None:
        _add(output, Table(line=line.number, layout="triad-only", unit=f"{rate[1]}B/s"))
        row = Row(rate=rate[2], unit=f"{rate[1]}B/s", fastest=output.runtime)
        row.facts["total"] = output.runtime
        output.tables[-1].rows["triad"] = row
        output.runtime = ""
    return seconds is not None or rate is not None


def _fact(output: Output, text: str) -> None:
    facts = output.facts
    if (match := _SETUP.match(text)) is not None:
        output.setup[match[1].lower()] = (match[2], match[3], f"{match[4]}B/s")
    elif (match := _SIZE.match(text)) is not None:
        if (value := number(match[2])) is not None:
            facts[f"{match[1].lower()}_size"] = value
            facts[f"{match[1].lower()}_size_unit"] = match[3]
    elif (match := _FACT.match(text)) is not None:
        key = match[1].lower().replace(" ", "_")
        value_whole = whole(match[2].strip())
        facts[key] = value_whole if key == "number_of_elements" and value_whole else excerpt(match[2])
    elif (match := _TIMES.match(text)) is not None:
        facts["kernels"], facts["num_times"] = " ".join(match[1].split()), int(match[2])
        order = re.search(r"times in\s+(\w{1,20}) order", text)
        if order is not None:
            facts["order"] = order[1]
    elif (match := _DEVICE.match(text)) is not None:
        facts["device"] = excerpt(match[2])
