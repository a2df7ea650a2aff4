"""Intel MPI Benchmarks (IMB): MPI-1, EXT, IO, NBC, RMA and the groups of `-multi`.

Columns are read by name. Bandwidths are recomputed from size and time, which also tells 10^6 from
2^20: both were called MBytes (IMB_output.c, `MEGA`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from transect.hpc.base import PARSERS, Parameter, Proof, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers import _imb_names as names
from transect.hpc.parsers._network import NetworkOutput, NetworkParser, Table, is_number, killed, twice
from transect.hpc.rules import rule, sets
from transect.hpc.text import Line, excerpt

_BANNER = re.compile(r"#\s*Intel ?\(R\) MPI Benchmark(?:s| Suite)?\s+(?:V(?:ersion)?\s*)?(.{1,40}?),\s*(\S{1,12}) part")
_TEST = re.compile(r"# Benchmarking (Multi-)?([A-Za-z]\w{1,60})")
_LISTED = re.compile(r"#\s+(?:\(Multi-\))?([A-Z]\w{1,60})\s*$")
_COUNTS = ("#bytes", "Group", "#repetitions")
_LENGTHS = re.compile(r"[ \t]-msg(?:len|log|sz)[ \t]")


@dataclass(kw_only=True, slots=True)
class _Suite:
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
class _Table(Table):
    test: str = ""
    multi: bool = False
    skipped: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class _Output(NetworkOutput):
    """What one rank (or all of them, without labels) prints."""

    suite: _Suite = field(init=False)
    table: _Table | None = None

    def __post_init__(self) -> None:
        self.suite = _Suite(line=self.line)
        if _LENGTHS.search(self.block.command):  # IMB-P2P does not print it
            self.suite.facts["lengths"] = "user defined"

    def read(self, line: Line, text: str) -> None:
        test, header = _TEST.match(text), names.header(text)
        if _BANNER.match(text) is None and (test is not None or (header and (self.table is None or self.table.rows))):
            if self.table is not None:
                self.ready.append(_close(self.block, self.suite, self.table, over=True))
            self.table = _Table(line=line.number, test=test[2] if test else "")
            if test is not None:
                self.suite.listing = False
                self.suite.seen.add(test[2].lower())
                self.table.multi = bool(test[1])
        if not header:
            super().read(line, text)
        elif self.table is not None and not line.cut:
            self.table.columns, self.table.width = header, len(line.text.rstrip())

    @rule(_BANNER, wanted="#")
    def banner(self, match: re.Match[str], line: Line) -> None:
        if self.suite.part or self.table is not None:
            self.ready += self.runs()
            self.suite, self.table = _Suite(line=line.number), None
        self.suite.line = line.number
        self.suite.version, self.suite.part = match[1].strip(), match[2]

    end = sets(r"# All processes entering MPI_Finalize", "suite.ended", True, wanted="")

    @rule(
        r"# (?:#processes = (\d{1,9})|\(\s*(\d{1,9}) groups of\s+(\d{1,9}) processes|\s*MODE:\s*(\S{1,30}))", wanted=""
    )
    def of_table(self, match: re.Match[str], line: Line) -> bool:
        if self.table is None:
            return False
        facts = {"groups": match[2], "processes": match[1] or match[3], "mode": match[4]}
        self.table.facts |= {k: v if k == "mode" else int(v) for k, v in facts.items() if v is not None}
        return True

    @rule(r"# Maximum (?:message length|io portion) in bytes:\s*(\d{1,15})", wanted="")
    def limit(self, match: re.Match[str], line: Line) -> None:
        self.suite.limit = int(match[1])

    @rule(
        r"# (Date|Machine|MPI Version|MPI Thread Environment|MPI_Datatype|MPI_Op"
        r"|MPI_Datatype for reductions)\s*:\s*(\S.*)",
        wanted="",
    )
    def fact(self, match: re.Match[str], line: Line) -> None:
        self.suite.facts[match[1]] = excerpt(match[2], 80)

    @rule(r"#", wanted="")
    def comment(self, match: re.Match[str], line: Line) -> None:
        suite, text = self.suite, match.string
        if "lengths were user defined" in text[:60]:
            suite.facts["lengths"] = "user defined"
        elif text.startswith("# List of Benchmarks"):
            suite.listing = True
        elif suite.listing and (entry := _LISTED.match(text)) is not None:
            suite.listed.append(entry[1])
        elif "IMB-" in text[:300] and self.table is None:
            suite.facts["command"] = excerpt(text.lstrip("# "), 200)

    def stop(self, text: str, most: int = 5) -> None:
        if self.table is not None:
            self.table.stops = [*self.table.stops[: most - 1], text]

    @rule(
        r"(\d{1,15})?\s*(time-out\.|out-of-mem\.|int-overflow\.)|(\d{1,9})\s+(\d{1,15})\s*time-out\.",
        wanted=r"(?:time-out|out-of-mem|int-overflow)\.",
    )
    def skipped(self, match: re.Match[str], line: Line) -> None:
        if self.table is not None and self.table.columns:
            self.table.skipped.append(excerpt(f"{match.string.split('.;')[0]}", 60))

    @rule(r".", wanted=r"\d{1,15}[ \t]+[-+\d.noit]")
    def row(self, match: re.Match[str], line: Line) -> bool:
        table = self.table
        if table is None or not table.columns:
            return False
        cells = match.string.split(None, 16)[:16]
        if not all(is_number(cell) for cell in cells):
            return False
        counts = [c for name, c in zip(table.columns, cells, strict=False) if name in _COUNTS]
        if len(cells) == len(table.columns) and not all(c.isascii() and c.isdecimal() and len(c) <= 15 for c in counts):
            return False
        return table.take(line, cells, self.block)

    def runs(self) -> Iterator[Run]:
        """Close the last table of a start of the program and report what it never came to."""
        suite = self.suite
        last = _close(self.block, suite, self.table, over=suite.ended) if self.table is not None else None
        if last is not None:
            yield last
        missing = [name for name in suite.listed if name.lower() not in suite.seen]
        if (last is None and suite.part) or (missing and not suite.ended):
            if last is not None and last.status in (RunStatus.FAILED, RunStatus.TRUNCATED):
                last.warnings.append(f"never came to {excerpt(', '.join(missing))}")
                return
            draft = self.draft(
                suite.line,
                variant=suite.part.lower(),
                version=suite.version,
                parameters=dict(suite.facts),
                stops=self.table.stops if self.table else [],
            )
            which = excerpt(", ".join(missing), 80) if missing else "the first table"
            draft.mark_truncated(f"before {which}")
            yield draft.run()


@PARSERS.register("imb")
class Imb(NetworkParser):
    """Reads every table, one run each, and names the benchmarks that never came."""

    benchmark = "imb"
    description = "Intel MPI Benchmarks: MPI-1, EXT, IO, NBC, RMA; single and Multi- groups"
    validity_notes = Proof(
        identity="Intel's banner, `# Benchmarking PingPong` of a benchmark that the suite has, the head of a table",
        success="a table that something follows, or that reaches the largest message; bandwidth is size over time",
        failure="defects, a value that is no number, every value 0; a time-out without any row is `failed`",
    )
    programs = (r"IMB-[A-Z0-9\-]{2,12}",)
    output = _Output
    start_patterns = (
        r"#[ \t]*Intel ?\(R\) MPI Benchmark",
        r"# Benchmarking (?:Multi-)?[A-Za-z]\w{1,60}[ \t]*(?=[\r\n]|\Z)",
        r"(?:Group[ \t]+)?#bytes[ \t]+#repetitions",
        r"(?:Group[ \t]+)?#repetitions[ \t]+t_",
    )
    also = (r"Group[ \t]+#", *NetworkParser.also)

    def matches(self, line: Line) -> bool:
        """Refuse `# Benchmarking X` where X is none of the suite."""
        match = _TEST.match(line.text.strip())
        return match is None or names.known(match[2])


def _close(block: Block, suite: _Suite, table: _Table, *, over: bool) -> Run:
    """Make the run of a table. `over`: something follows it, so that nothing of it can miss."""
    processes = int(str(table.facts.get("processes", 0)))
    unit, problem = names.bandwidth_unit(table.test, table.columns, table.rows, processes)
    name = f"Multi-{table.test}" if table.multi else table.test
    table.stops = [*table.stops, *filter(None, [block.take_trouble()])]
    draft = Draft(
        block=block,
        line=table.line,
        variant=suite.part.lower(),
        version=suite.version,
        parameters={"test": name, **table.facts, **suite.facts},
        stops=table.stops,
        warnings=list(table.warnings),
    )
    columns = partial(names.column, test=table.test, part=suite.part, unit=unit)
    latency = table.test.lower() == "pingpong" and "t[usec]" in table.columns
    draft.mark_invalid(table.fill(draft.metrics, columns, names.contradiction, latency=latency) or problem)
    if not (over and table.rows and not table.cut):
        _judge(draft, table, suite)
    if table.skipped:
        draft.warnings.append(f"not measured: {'; '.join(table.skipped[:8])}")
    keys = [i for i, column in enumerate(table.columns) if column in ("#bytes", "Group")]
    if doubled := twice(tuple(row[i] for i in keys) for row in table.rows) if keys else "":
        draft.suspicions.append(doubled)
    if unit == "MiB/s":
        draft.warnings.append("Mbytes/sec counts 2^20 bytes, as size over time shows")
    if not table.test:
        draft.warnings.append("the log has lost the name of the benchmark")
    draft.warn_stop("after the last row")
    return draft.run()


def _judge(draft: Draft, table: _Table, suite: _Suite) -> None:
    if not table.rows:
        if table.skipped:
            draft.set_status(RunStatus.FAILED, f"nothing was measured: {table.skipped[0]}")
        draft.mark_truncated("before the first row")
        return
    limit = suite.limit or (1 << 22)
    full = "#bytes" not in table.columns or bool(table.skipped) or table.last() >= limit
    if killed(draft.stop) or (draft.stop and not full):
        draft.mark_truncated(f"after size {table.last()}")
    if table.cut or (not full and "lengths" not in suite.facts):
        words = draft.block.last_words()
        draft.set_status(RunStatus.TRUNCATED, f"ends after size {table.last()} of {limit}, with: {words}")
