"""mdtest 1.x to 4.x: rates of creating, looking at and removing files and directories.

The header of a table says whether it holds rates or times, but not reliably: mdtest 4.1 prints
its times under `ops/sec` or `ms/op`. A second table of the same run is the table of times
(mdtest.c prints the rates first), and rate times time must be the number of items.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Proof, Run, Series
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import apart, span
from transect.hpc.rules import Output, OutputParser, keeps, notes, rule, sets
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

_OPERATION = (
    r"(?:Directory (?:creation|stat|read|removal|rename)|File (?:creation|stat|read|removal)"
    r"|Tree (?:creation|removal))"
)
_BANNER = re.compile(
    r"mdtest-(\S{1,40}) was launched with (\d{1,10}) total task\(?s?\)?"
    r"(?: on (\d{1,9}) node)?"
)
_HEAD = re.compile(r"SUMMARY(?: (rate|time))?:?(?: \(in ([^)\n]{1,20})\):?)?:? \(of (\d{1,9}) iterations?\)")
_ITEMS = re.compile(r"(\d{1,10}) tasks, (\d{1,18}) (files?(?:/directories)?|directories)")
_TIMES_ONLY = re.compile(r"[\s'\"]-Z(?:[\s'\"]|$)")
_LAST = "Tree removal"  # closes every table


_COLUMNS = ("max", "min", "mean", "stddev")


@dataclass(kw_only=True, slots=True)
class _Table:
    """One summary table: operation -> max, min, mean, standard deviation as printed."""

    line: int
    kind: str
    label: str
    iterations: int
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Output(Output):
    items: int = 0
    headed: bool = False
    tables: list[_Table] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    unverified: str = ""

    def table(self, kind: str) -> _Table | None:
        """Return the first table of that kind that has rows."""
        return next((t for t in self.tables if t.kind == kind and t.rows), None)

    def begins(self, text: str) -> bool:
        """Tell whether a line belongs to the next start, or to the next number of tasks within one."""
        if text.startswith("-- started at "):
            return self.headed or bool(self.tables)
        if _BANNER.match(text):
            return self.headed or bool(self.tables)
        if _ITEMS.match(text):
            return bool(self.tables)
        if (match := _HEAD.match(text)) is None or not self.tables:
            return False
        # Only 4.1 calls its times rates, and then it prints a unit.
        again = match[1] != "time" and not match[2]
        return again or self.table("time") is not None or len(self.tables) >= 2

    def following(self, line: Line, text: str) -> _Output:
        """Return an empty one; another number of tasks (-f, -l) keeps what the start said of itself."""
        if not _ITEMS.match(text):
            return _Output(block=self.block, line=line.number)
        facts = {k: v for k, v in self.facts.items() if k not in ("files", "directories")}
        return _Output(block=self.block, line=line.number, version=self.version, facts=facts, headed=self.headed)

    @rule(rf"({_OPERATION})[ \t]*:?[ \t]+(\S.{{0,400}})$")
    def row(self, match: re.Match[str], line: Line) -> None:
        operation, cells = match[1], match[2].split()
        if not self.tables or operation in self.tables[-1].rows:
            return
        # With statistics of the ranks, their maximum, minimum and mean stand in front.
        cells = cells[3:] if len(cells) == 7 else cells
        if len(cells) != 4:
            return
        self.tables[-1].rows[operation] = tuple(cells)

    @rule(_HEAD)
    def head(self, match: re.Match[str], line: Line) -> None:
        kind = match[1] or "rate"
        if self.table("rate") is not None or _TIMES_ONLY.search(str(self.facts.get("command", ""))):
            kind = "time"
        label = match[2] or ("" if match[1] != "time" else "s")
        self.tables.append(_Table(line=line.number, kind=kind, label=label, iterations=int(match[3])))

    @rule(rf"V-1:.{{0,60}}?({_OPERATION})[ \t]{{0,12}}: +({NUMBER}) sec, +({NUMBER}) ops/sec")
    def once(self, match: re.Match[str], line: Line) -> None:
        values = self.samples.setdefault(match[1], [])
        rate = number(match[3])
        if rate:
            values.append(rate)

    end = sets(r"-- finished at ", "ended", True)

    wrong_data = sets(r"(ERROR: verifying the data.*)", "unverified", wanted="")

    failed = keeps(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d: Process|(?:ior |mdtest )?ERROR\b|FAIL(?:ED|URE)?\b", "errors")

    @rule(_BANNER)
    def banner(self, match: re.Match[str], line: Line) -> None:
        self.headed = True
        self.version = match[1]
        self.facts["tasks"] = int(match[2])
        if match[3]:
            self.facts["nodes"] = int(match[3])

    @rule(_ITEMS)
    def count(self, match: re.Match[str], line: Line) -> None:
        self.items = int(match[2])
        self.facts["tasks"] = int(match[1])
        self.facts["files" if match[3].startswith("file") else "directories"] = self.items

    command = notes(r"Command line used: (\S.{0,400})", "command", str)

    path = notes(r"Path[^:]*:(.*)", "path", wanted=r"Path[ \t]*:")

    def runs(self) -> Iterator[Run]:
        rates, times = self.table("rate"), self.table("time")
        draft = self.draft(
            variant="times" if rates is None and times else "rates and times" if times else "rates",
            samples={op: Series(unit="1/s", values=rows) for op, rows in self.samples.items()},
            warnings=list(self.errors),
            stops=[*self.errors[:2], self.block.take_trouble()],
        )
        _add_metrics(draft, rates, self)
        rated = len(draft.metrics)
        _add_metrics(draft, times, self)
        _judge(draft, self, rated)
        whole = rates or times
        if whole is not None:
            draft.parameters["iterations"] = whole.iterations
            idle = [op for op, row in whole.rows.items() if not number(row[0])]
            if idle:
                draft.parameters["not_run"] = idle
        if draft.ok and not self.ended:
            words = self.block.last_words()
            draft.warnings.append(f"no '-- finished at': the log ends with: {words}")
        if times is not None and times.label and times.label != "s":
            draft.warnings.append(f"the table of times is labelled '{times.label}'")
        yield draft.run()


@PARSERS.register("mdtest")
class Mdtest(OutputParser):
    """Reads the summary tables, never the lines of single iterations."""

    benchmark = "mdtest"
    description = "mdtest 1.x to 4.x: rates of operations on files and directories"
    validity_notes = Proof(
        identity="`mdtest-3.4.0 was launched with`, `-- started at`, `SUMMARY rate`",
        success="a table of results down to its last row; the mean lies between least and most, rate times time is the number of items",
        failure="data that could not be verified, a row that contradicts itself, a cell that is no number",
    )
    programs = (r"mdtest",)
    output = _Output
    start_patterns = (
        r"mdtest-[\w.+\-]{1,40} was launched with \d",
        r"-- started at \d\d/\d\d/\d{4} \d\d:\d\d:\d\d --",
        r"SUMMARY(?: rate| time)?:?(?: \(in [^)\n]{1,20}\):?)?:? \(of \d{1,9} iteration",
    )
    also = (r"-- started at ",)


def _add_metrics(draft: Draft, table: _Table | None, output: _Output) -> None:
    if table is None:
        return
    unit = _unit_of(table, output)
    rates, base = output.table("rate"), {"1/s": "metadata_rate", "s": "benchmark_time"}.get(unit)
    for operation, row in table.rows.items():
        known = rates.rows.get(operation) if rates is not None else None
        if not number((known or row)[0]) and not _broken((known or row)[0]):
            continue  # 0.000 or -: it did not run
        for column, printed in zip(_COLUMNS, row, strict=True):
            way = Direction.NEUTRAL if column == "stddev" else None
            registered = base if column in ("max", "mean") else None
            draft.add_metric(f"{table.kind}_{column}", printed, unit, way, registered=registered, phase=operation)


def _judge(draft: Draft, output: _Output, rated: int) -> None:
    whole = output.table("rate") or output.table("time")
    if whole is None:
        draft.mark_truncated("before its table of results")
    elif any(_LAST not in table.rows for table in output.tables):
        draft.mark_truncated("within its table")
    draft.mark_invalid(excerpt(output.unverified))
    for table in output.tables:
        for operation, row in table.rows.items():
            if draft.ok:
                draft.mark_invalid(_wrong(table, operation, row, int(str(output.facts.get("tasks", 0)))))
    if draft.ok:
        draft.mark_invalid(_contradicted(output))
    draft.mark_impossible(draft.metrics[:rated])
    if whole is not None and not any(number(row[0]) for row in whole.rows.values()):
        draft.mark_no_result("no operation ran: every row of the table is 0")


def _unit_of(table: _Table, output: _Output) -> str:
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


def _broken(printed: str) -> bool:
    """Tell whether a cell is neither a number nor `-`, e.g. nan."""
    return printed != "-" and number(printed) is None


def _wrong(table: _Table, operation: str, row: tuple[str, ...], tasks: int) -> str | None:
    """Say what is wrong within one row, or return None. `tasks`: 0 where the log does not say."""
    label = f"{operation} ({table.kind})"
    for column, printed in zip(_COLUMNS, row, strict=True):
        # One iteration has no deviation: some versions print nan.
        if _broken(printed) and not (column == "stddev" and table.iterations == 1):
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


def _contradicted(output: _Output) -> str | None:
    """Compare rate times time with the number of items, for one iteration of a plain run."""
    rates, times = output.table("rate"), output.table("time")
    command = str(output.facts.get("command", ""))
    # A stonewall ends the phase early; -S lets all tasks use one file.
    if rates is None or times is None or rates.iterations != 1 or not output.items:
        return None
    if re.search(r"(?:^|[\s'\"])-(?:W|x|S|Y)", command) or _unit_of(times, output) != "s":
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
