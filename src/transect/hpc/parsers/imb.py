"""Intel MPI Benchmarks (IMB): MPI-1, EXT, IO, NBC, RMA and the groups of `-multi`.

Columns are read by name. Bandwidths are recomputed from size and time, which also tells 10^6 from
2^20: both were called MBytes (IMB_output.c, `MEGA`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.hpc.base import PARSERS, Parser, Proof, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers import _imb_names as names
from transect.hpc.parsers._imb_table import Output, Suite, Table, fill
from transect.hpc.parsers._network import MOST_ROWS, STOPS, is_number, killed, stop_of, twice, whole
from transect.hpc.ranks import per_rank
from transect.hpc.text import Line, excerpt

_BANNER = re.compile(r"#\s*Intel ?\(R\) MPI Benchmark(?:s| Suite)?\s+(?:V(?:ersion)?\s*)?(.{1,40}?),\s*(\S{1,12}) part")
_TEST = re.compile(r"# Benchmarking (Multi-)?([A-Za-z]\w{1,60})")
_LIMIT = re.compile(r"# Maximum (?:message length|io portion) in bytes:\s*(\d{1,15})")
_PROCESSES = re.compile(r"# #processes = (\d{1,9})")
_GROUPS = re.compile(r"# \(\s*(\d{1,9}) groups of\s+(\d{1,9}) processes")
_MODE = re.compile(r"#\s+MODE:\s*(\S{1,30})")
_FACT = re.compile(
    r"# (Date|Machine|MPI Version|MPI Thread Environment|MPI_Datatype|MPI_Op"
    r"|MPI_Datatype for reductions)\s*:\s*(\S.*)"
)
_LISTED = re.compile(r"#\s+(?:\(Multi-\))?([A-Z]\w{1,60})\s*$")
_LENGTHS = re.compile(r"[ \t]-msg(?:len|log|sz)[ \t]")
_SKIPPED = re.compile(r"(\d{1,15})?\s*(time-out\.|out-of-mem\.|int-overflow\.)|(\d{1,9})\s+(\d{1,15})\s*time-out\.")


@PARSERS.register("imb")
class Imb(Parser):
    """Reads every table, one run each, and names the benchmarks that never came."""

    benchmark = "imb"
    description = "Intel MPI Benchmarks: MPI-1, EXT, IO, NBC, RMA; single and Multi- groups"
    proof = Proof(
        identity="Intel's banner, `# Benchmarking PingPong` of a benchmark that the suite has, the head of a table",
        success="a table that something follows, or that reaches the largest message; bandwidth is size over time",
        failure="defects, a value that is no number, every value 0; a time-out without any row is `failed`",
    )
    programs = (r"IMB-[A-Z0-9\-]{2,12}",)
    starts = (
        r"#[ \t]*Intel ?\(R\) MPI Benchmark",
        r"# Benchmarking (?:Multi-)?[A-Za-z]\w{1,60}[ \t]*(?=[\r\n]|\Z)",
        r"(?:Group[ \t]+)?#bytes[ \t]+#repetitions",
        r"(?:Group[ \t]+)?#repetitions[ \t]+t_",
    )
    wants = (r"#", r"Group[ \t]+#", r"\d{1,15}[ \t]+[-+\d.noit]", r"(?:time-out|out-of-mem|int-overflow)\.", *STOPS)

    def sniff(self, line: Line) -> bool:
        """Refuse `# Benchmarking X` where X is none of the suite."""
        match = _TEST.match(line.text.strip())
        return match is None or names.known(match[2])

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per table."""
        return per_rank(
            block,
            lambda line: Output(_suite(block, line)),
            stops=stop_of,
            read=lambda output, line, text: _read_line(block, output, line, text),
            close=lambda output, _: _finish(block, output),
        )


def _suite(block: Block, line: int) -> Suite:
    suite = Suite(line=line)
    if _LENGTHS.search(block.command):  # IMB-P2P does not print it
        suite.facts["lengths"] = "user defined"
    return suite


def _read_line(block: Block, output: Output, line: Line, text: str) -> Iterator[Run]:
    banner, test, header = _BANNER.match(text), _TEST.match(text), names.header(text)
    if banner is not None:
        if output.suite.part or output.table is not None:
            yield from _finish(block, output)
            output.suite, output.table = Suite(line=line.number), None
        output.suite.line = line.number
        output.suite.version, output.suite.part = banner[1].strip(), banner[2]
    elif test is not None or (header and (output.table is None or output.table.rows)):
        if output.table is not None:
            yield _close(block, output, over=True)
        output.table = Table(line=line.number, test=test[2] if test else "")
        if test is not None:
            output.suite.listing = False
            if len(output.suite.seen) < 500:
                output.suite.seen.add(test[2].lower())
            output.table.multi = bool(test[1])
    _read(block, output, line, text, header)


def _read(block: Block, output: Output, line: Line, text: str, header: list[str]) -> None:
    suite, table = output.suite, output.table
    if header:
        if table is not None and not line.cut:
            table.columns, table.width = header, len(line.text.rstrip())
    elif text.startswith("#"):
        _read_comment(suite, table, text)
    elif stop := stop_of(text):
        if table is not None:
            table.stops = [*table.stops[:4], stop]
    elif table is not None and table.columns:
        if _SKIPPED.match(text):
            if len(table.skipped) < 50:
                table.skipped.append(excerpt(f"{text.split('.;')[0]}", 60))
            return
        _read_row(block, table, line, text)


def _read_comment(suite: Suite, table: Table | None, text: str) -> None:
    if text.startswith("# All processes entering MPI_Finalize"):
        suite.ended = True
    elif (match := _PROCESSES.match(text)) is not None and table is not None:
        table.facts["processes"] = int(match[1])
    elif (match := _GROUPS.match(text)) is not None and table is not None:
        table.facts["groups"] = int(match[1])
        table.facts["processes"] = int(match[2])
    elif (match := _MODE.match(text)) is not None and table is not None:
        table.facts["mode"] = match[1]
    elif (match := _LIMIT.match(text)) is not None:
        suite.limit = int(match[1])
    elif (match := _FACT.match(text)) is not None:
        suite.facts[match[1]] = excerpt(match[2], 80)
    elif "lengths were user defined" in text[:60]:
        suite.facts["lengths"] = "user defined"
    elif text.startswith("# List of Benchmarks"):
        suite.listing = True
    elif suite.listing and (match := _LISTED.match(text)) is not None:
        if len(suite.listed) < 200:
            suite.listed.append(match[1])
    elif "IMB-" in text[:300] and table is None:
        suite.facts["command"] = excerpt(text.lstrip("# "), 200)


def _read_row(block: Block, table: Table, line: Line, text: str) -> None:
    cells = text.split(None, 16)[:16]
    if not all(is_number(cell) for cell in cells):
        return
    if len(cells) != len(table.columns) or not whole(line, table.width):
        if line.cut:
            table.cut = True
        elif len(table.warnings) < 5:
            table.warnings.append(f"line {line.number} has {len(cells)} cells under {len(table.columns)} columns")
        return
    if not all(
        c.isascii() and c.isdecimal() and len(c) <= 15
        for name, c in zip(table.columns, cells, strict=True)
        if name in ("#bytes", "Group", "#repetitions")
    ):
        return
    if len(table.rows) >= MOST_ROWS:
        table.more += 1
        table.rows[-1] = cells
    else:
        table.rows.append(cells)
    table.width = len(line.text.rstrip())
    early = "; ".join(one for one in (*table.stops, block.take_trouble()) if one)
    if early and len(table.warnings) < 5:
        table.warnings.append(f"before a row: {early}")
    table.stops = []


def _finish(block: Block, output: Output) -> Iterator[Run]:
    """Close the last table of a start of the program and report what it never came to."""
    suite = output.suite
    last = _close(block, output, over=suite.ended) if output.table is not None else None
    if last is not None:
        yield last
    missing = [one for one in suite.listed if one.lower() not in suite.seen]
    if (last is None and suite.part) or (missing and not suite.ended):
        if last is not None and last.status in (RunStatus.FAILED, RunStatus.TRUNCATED):
            last.warnings.append(f"never came to {excerpt(', '.join(missing))}")
            return
        draft = Draft(
            block=block,
            line=suite.line,
            variant=_variant(suite),
            version=suite.version,
            parameters=dict(suite.facts),
            stops=output.table.stops if output.table else [],
        )
        which = excerpt(", ".join(missing), 80) if missing else "the first table"
        draft.ends(f"before {which}")
        yield draft.run()


def _variant(suite: Suite) -> str:
    return suite.part.lower()


def _close(block: Block, output: Output, *, over: bool) -> Run:
    """Make the run of a table. `over`: something follows it, so that nothing of it can miss."""
    suite, table = output.suite, output.table
    assert table is not None
    processes = int(str(table.facts.get("processes", 0)))
    unit, problem = names.bandwidth_unit(table.test, table.columns, table.rows, processes)
    name = f"Multi-{table.test}" if table.multi else table.test
    table.stops = [*table.stops, *filter(None, [block.take_trouble()])]
    draft = Draft(
        block=block,
        line=table.line,
        variant=_variant(suite),
        version=suite.version,
        parameters={"test": name, **table.facts, **suite.facts},
        stops=table.stops,
        warnings=list(table.warnings),
    )
    draft.refuse(fill(table, suite, unit, draft.metrics) or problem)
    if not (over and table.rows and not table.cut):
        _judge(draft, table, suite)
    if table.skipped:
        draft.warnings.append(f"not measured: {'; '.join(table.skipped[:8])}")
    keys = [i for i, one in enumerate(table.columns) if one in ("#bytes", "Group")]
    if doubled := twice(tuple(row[i] for i in keys) for row in table.rows) if keys else "":
        draft.suspicions.append(doubled)
    if table.more:
        draft.warnings.append(f"{table.more} rows beyond the first {MOST_ROWS} are not kept")
    if unit == "MiB/s":
        draft.warnings.append("Mbytes/sec counts 2^20 bytes, as size over time shows")
    if not table.test:
        draft.warnings.append("the log has lost the name of the benchmark")
    draft.tell_stops("after the last row")
    return draft.run()


def _judge(draft: Draft, table: Table, suite: Suite) -> None:
    if not table.rows:
        if table.skipped:
            draft.settle(RunStatus.FAILED, f"nothing was measured: {table.skipped[0]}")
        draft.ends("before the first row")
        return
    limit = suite.limit or (1 << 22)
    full = "#bytes" not in table.columns or bool(table.skipped) or table.last() >= limit
    if killed(draft.stop) or (draft.stop and not full):
        draft.ends(f"after size {table.last()}")
    if table.cut or (not full and "lengths" not in suite.facts):
        words = draft.block.last_words()
        draft.settle(RunStatus.TRUNCATED, f"ends after size {table.last()} of {limit}, with: {words}")
