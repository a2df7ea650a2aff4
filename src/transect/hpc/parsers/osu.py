"""OSU Micro-Benchmarks 2 to 7: MPI, GPU buffers, NCCL, OpenSHMEM, UPC and Python.

Columns are read by name. Nothing marks the end of a table, so a table that merely stops is taken
as it stands, unless the log says that the program was stopped, the last row is cut, or an earlier
table of the same test reached a larger message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.hpc.base import PARSERS, LogMetric, Proof, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers import _osu_names as names
from transect.hpc.parsers._network import (
    Column,
    NetworkOutput,
    NetworkParser,
    Table,
    between,
    cell_metric,
    is_number,
    killed,
)
from transect.hpc.rules import rule
from transect.hpc.text import Line, excerpt

_SIZE = re.compile(r"\d{1,18}")
_VERDICTS = ("Pass", "Fail", "N/A", "-")
_HEADER = (
    r"(?:Size(?:[ \t]*\(B\))?[ \t]+(?:Avg |Bi-)?(?:Latency|Bandwidth)[ \t]*\((?:us|MB/s)\)"
    r"|Size[ \t]+MB/s(?:[ \t]+Messages/s)?|Size[ \t]+Overall\(us\)"
    r"|(?:Avg Latency|Overall)[ \t]?\(us\)|Operation[ \t]+Million ops/s)"
)


@dataclass(kw_only=True, slots=True)
class _Table(Table):
    title: names.Title | None = None
    bad: str = ""
    result: tuple[str, ...] = ()

    def keyed(self) -> bool:
        return self.place("Size") == 0


@dataclass(kw_only=True)
class _Output(NetworkOutput):
    """The tables that one rank prints, or programs that print at once."""

    tables: list[_Table] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables.append(_Table(line=self.line))

    def begins(self, text: str) -> bool:
        """Tell whether a line begins another table, so that the open ones are over."""
        tables = self.tables
        if (title := names.read_title(text)) is not None:
            # Without a header or a row so far, several programs print at once.
            return any(t.rows or t.result or (t.title and t.columns) for t in tables) or any(
                t.title and t.title != title for t in tables
            )
        if text.startswith("# Number of S"):
            return any(t.rows or t.result for t in tables)
        return bool(names.columns(text)) and all(t.columns and (t.rows or t.result) for t in tables)

    @rule(r"#", wanted="#")
    def title(self, match: re.Match[str], line: Line) -> bool:
        title = names.read_title(match.string)
        if title is None:
            return False
        if self.tables[-1].title is not None:
            self.tables.append(_Table(line=line.number))
        table = self.tables[-1]
        table.title = title
        # Comments may precede the title: the run then begins with them.
        table.line = min(table.line, line.number) if table.facts else line.number
        return True

    @rule(r".", wanted=_HEADER)
    def header(self, match: re.Match[str], line: Line) -> bool:
        columns = names.columns(match.string)
        target = next((t for t in self.tables if not t.columns), self.tables[-1])
        if columns and not target.rows and not line.cut:
            target.columns, target.width = columns, len(line.text.rstrip())
        return bool(columns)

    @rule(r"#", wanted="")
    def fact(self, match: re.Match[str], line: Line) -> None:
        for key, value in names.facts(match.string).items():
            self.tables[-1].facts.setdefault(key, value)

    @rule(
        r"nprocs:\s*(\d{1,9}),\s*min:\s*([\d.]{1,20})\s*(m?s),\s*max:\s*([\d.]{1,20})\s*m?s,"
        r"\s*avg:\s*([\d.]{1,20})\s*m?s"
    )
    def start_up(self, match: re.Match[str], line: Line) -> None:
        if not line.cut:
            self.tables[-1].result = (match[2], match[4], match[5], match[3])
            self.tables[-1].facts["nprocs"] = int(match[1])

    @rule(r"This is a test with (\d{1,9}) processes", wanted=r"This is a test with ")
    def hello(self, match: re.Match[str], line: Line) -> None:
        self.tables[-1].facts["nprocs"] = int(match[1])

    @rule(r"DATA VALIDATION ERROR")
    def wrong_data(self, match: re.Match[str], line: Line) -> None:
        self.tables[-1].bad = self.tables[-1].bad or excerpt(match.string)

    def stop(self, text: str, most: int = 5) -> None:
        self.tables[-1].stops = [*self.tables[-1].stops[: most - 1], text]

    @rule(r"(?:\d{1,18}(?:[ \t.]|(?=[\r\n]|\Z))|[-+]?nan|-\d|shmem_\w{1,40}[ \t])")
    def row(self, match: re.Match[str], line: Line) -> bool:
        cells = match.string.split(None, 24)[:24]
        if not all(is_number(c) or c in _VERDICTS for c in cells[1:]):
            return False
        for table in self.tables:
            if not table.columns or (not table.keyed() and len(table.rows) > 0):
                continue
            if table.keyed() and not (_SIZE.fullmatch(cells[0]) and int(cells[0]) > table.last()):
                continue
            if len(cells) == len(table.columns) and not is_number(cells[0]) and table.columns[0] != "Operation":
                continue
            table.take(line, cells, self.block)
            return True
        return False

    def runs(self) -> Iterator[Run]:
        return (_close(self.block, table) for table in self.tables if self.alone or _begun(table))


@PARSERS.register("osu")
class Osu(NetworkParser):
    """Reads every table of a file, one run each."""

    benchmark = "osu"
    description = "OSU Micro-Benchmarks: point-to-point, collective, one-sided, start-up tests"
    validity_notes = Proof(
        identity="`# OSU MPI … Test`, `# OMB …`, the head of a table",
        success="rows without gaps and words of a stop; they reach the test's usual largest message, or what an earlier table of the test reached",
        failure="`Fail`, `DATA VALIDATION ERROR`, a value that is no number, a mean outside of least and most, every value 0",
    )
    programs = (r"osu_[a-z_0-9]{2,40}",)
    output = _Output
    start_patterns = (
        r"#[ \t]*OSU[ \t]+(?:MPI|NCCL|RCCL|XCCL|HCCL|OpenSHMEM|UPC|UPCXX|GASNet)[^\n]{1,120}[Tt]est",
        r"#[ \t]*OMB[ \t]+(?:Python|MPI|NCCL)[^\n]{1,120}[Tt]est",
        rf"#[ \t]*{_HEADER}",
        r"# Number of (?:Sender|Receiver) threads:",
    )


def _begun(table: _Table) -> bool:
    return bool(table.title or table.columns or table.rows or table.facts)


def _close(block: Block, table: _Table) -> Run:
    # The largest message that earlier tables of each test reached.
    reached = block.kept
    title = table.title or names.UNTITLED
    test = title.test or names.guess(table.columns)
    draft = Draft(
        block=block,
        line=table.line,
        variant=title.variant,
        version=title.version,
        parameters={"test": test, **table.facts},
        warnings=table.warnings,
        stops=[*table.stops, block.take_trouble()],
    )
    draft.mark_invalid(_problem(table, test, draft.metrics) or table.bad)
    key = (title.variant, test)
    _judge(draft, table, test, reached.get(key, 0))
    if draft.ok and table.rows and table.keyed():
        reached[key] = max(reached.get(key, 0), table.last())
    if table.title is None:
        draft.warnings.append("the log has lost the title of the test")
    draft.warn_stop("after the last row")
    return draft.run()


def _judge(draft: Draft, table: _Table, test: str, before: int) -> None:
    """Climb the ladder; `before` is the largest message that an earlier table of the test reached."""
    if table.result:
        return
    if not table.rows:
        if test == "hello" and "nprocs" in table.facts and not draft.stop:
            draft.mark_no_result("osu_hello measures nothing")
        draft.mark_truncated("before the first row")
    elif not table.keyed():
        if killed(draft.stop):
            draft.set_status(RunStatus.FAILED, draft.stop)
    else:
        full = table.last() >= max(before, names.largest(test))
        if killed(draft.stop) or (draft.stop and not full):
            draft.mark_truncated(f"after size {table.last()}")
        if table.cut or 0 < table.last() < before:
            why = "within a row" if table.cut else f"an earlier table of {test} reached {before}"
            words = draft.block.last_words()
            draft.set_status(RunStatus.TRUNCATED, f"ends after size {table.last()} ({why}), with: {words}")


def _problem(table: _Table, test: str, metrics: list[LogMetric]) -> str:
    """Fill `metrics` and say what is wrong with the first wrong value."""
    if not table.result:
        return table.fill(
            metrics, lambda name: names.column(name, test), names.contradiction, latency=names.is_latency(test)
        )
    low, high, mean, unit = table.result
    for name, printed in (("avg_time", mean), ("min_time", low), ("max_time", high)):
        made = Column(name, unit, "benchmark_time" if name == "avg_time" else None)
        if (metric := cell_metric(made, printed)) is not None:
            metrics.append(metric)
    return "" if between(low, mean, high) else f"avg {mean} is not between {low} and {high}"
