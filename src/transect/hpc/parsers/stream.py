"""STREAM: McCalpin's C and Fortran versions, NVIDIA-STREAM, the CUDA port and Microsoft's.

The rate is recomputed as the program counts it: copy and scale move two arrays, add and triad
three (https://www.cs.virginia.edu/stream/ref.html, "counting bytes and FLOPS").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parameter, Parser, Proof, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._network import between
from transect.hpc.rules import searched
from transect.hpc.ranks import per_rank
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, UNITS, contradiction

_ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
_ROW = re.compile(
    rf"(Copy|Scale|Add|Triad)\s*:\s*"
    rf"({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})",
    re.IGNORECASE,
)
_TABLE = re.compile(r"Function\s+(?:Best )?Rate\s*\(?([kKMGT]i?B/s)\)?(?:.{0,60}?(time))?", re.IGNORECASE)
# Under a head without times: what stands behind the rate has no name.
_RATE = re.compile(rf"(Read|Copy|Scale|Add|Triad|Write)\s*:\s*({NUMBER})(?:\s+{NUMBER}){{0,12}}$", re.IGNORECASE)
_VERSION = re.compile(r"(?:STREAM version \$Revision:\s*|NVIDIA-STREAM\s+v?)([\w.]{1,20})")
_BYTES = re.compile(r"This system uses\s+(\d{1,4}) bytes per")
_SIZE = re.compile(r"(?:Total Aggregate )?Array size\s*(?:\(double\))?\s*=\s*(\d{1,16})(?![\d.])")
_MEGABYTES = re.compile(r"Array size \((double|single) precision\)\s*=\s*(\d{1,12}(?:\.\d{1,9})?)\s*MB")
_THREADS = re.compile(r"Number of Threads (requested|counted)\s*=\s*(\d{1,9})")
_TIMES = re.compile(r"Each (?:kernel|test) (?:will be executed|is run)\s+(\d{1,9}) times")
_MICROSOFT = re.compile(r"(?:Test executed with (\d{1,6}) cores|Number of (threads|Iterations) is (\d{1,9}))")
_TESTS = re.compile(r"STREAM tests:\s*([A-Z ]{4,60})")
_OF_MICROSOFT = "Read and write vector size is"
_HEADS = ("STREAM version", "NVIDIA-STREAM", "STREAM Benchmark implementation", _OF_MICROSOFT)
_MOST_OPEN = 4096


@dataclass(kw_only=True, slots=True)
class _Table:
    line: int
    unit: str
    timed: bool = True  # whether times stand behind the rates
    rows: dict[str, tuple[str, str, str, str]] = field(default_factory=dict)
    verdict: str = ""
    reason: str = ""


@dataclass(slots=True)
class _Output:
    """What one rank (or all of them, without rank labels) has printed so far."""

    facts: dict[str, Parameter] = field(default_factory=dict)
    variant: str = "mccalpin"
    version: str = ""
    line: int = 0
    heads: int = 0
    headed: bool = False  # a header that no table has followed yet
    tables: list[_Table] = field(default_factory=list)

    def expected(self) -> list[str]:
        tests = self.facts.get("tests")
        named = [one for one in str(tests).lower().split() if one in _ARRAYS] if tests else []
        return named or [*_ARRAYS, *(("read", "write") if self.variant == "microsoft" else ())]


@PARSERS.register("stream")
class Stream(Parser):
    """Reads tables of rates and their verdicts."""

    benchmark = "stream"
    description = "STREAM: McCalpin's C version, NVIDIA-STREAM, the CUDA port, Microsoft's"
    proof = Proof(
        identity="`STREAM version $Revision`, NVIDIA-STREAM, the CUDA port's title, `Read and write vector size is 64.0 MB`, the head of its table",
        success="a row for each kernel and `Solution Validates`; variants that print no verdict need none; rate and time agree with the bytes",
        failure="`Failed Validation`, a rate that is no number or that array size and time refute, a mean time outside of least and most",
    )
    programs = (r"stream(?:[_\-][\w.\-]{1,30})?(?:\.exe)?", r"stream\.x")
    starts = (
        r"STREAM version \$Revision",
        r"NVIDIA-STREAM[ \t]+v?\d",
        r"STREAM Benchmark implementation in",
        rf"{_OF_MICROSOFT} \d",
        r"This system uses[ \t]+\d+ bytes per (?:array element|DOUBLE PRECISION|SINGLE PRECISION)",
        r"Function[ \t]+(?:Best )?Rate[ \t]*\(?[kKMGT]i?B/s",
    )
    wants = (
        *starts,
        *searched(_ROW, _RATE, _SIZE, _MEGABYTES, _THREADS, _TESTS, _MICROSOFT),
        r"Each (?:kernel|test)",
        r"Solution Validates",
        r"Failed Validation",
        r"Device Selected",
    )

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per table. Tables of labelled ranks are kept apart."""
        return per_rank(
            block,
            lambda line: _Output(line=line),
            most=_MOST_OPEN,
            begins=_begins,
            read=_read,
            close=lambda output, _: _close(block, output),
            over=lambda output: len(output.tables) > _MOST_OPEN or _whole(output),
        )


def _begins(output: _Output, text: str) -> bool:
    """Tell whether a second header follows rows: the run before is over, unless several interleave."""
    return _heads(output, text) and any(t.rows for t in output.tables) and output.heads <= 1


def _heads(output: _Output, text: str) -> bool:
    return text.startswith(_HEADS) or (not output.headed and _BYTES.match(text) is not None)


def _close(block: Block, output: _Output) -> Iterator[Run]:
    if not output.tables and output.headed:
        draft = _draft(block, output, output.line)
        if draft.stop:
            draft.settle(RunStatus.FAILED, draft.stop)
        words = block.last_words()
        draft.settle(RunStatus.TRUNCATED, f"ends before the table of results, with: {words}")
        yield draft.run()
    for table in output.tables:
        yield _result(block, output, table)


def _draft(block: Block, output: _Output, line: int) -> Draft:
    return Draft(
        block=block,
        benchmark="stream",
        line=line,
        variant=output.variant,
        version=output.version,
        parameters=dict(output.facts),
    )


def _whole(output: _Output) -> bool:
    """Tell whether the one open table has all its rows and its verdict."""
    return len(output.tables) == 1 and output.heads <= 1 and output.tables[0].verdict == "passed"


def _read(output: _Output, line: Line, text: str) -> None:
    if _heads(output, text):
        output.heads += 1
        output.headed = True
    timed = not output.tables or output.tables[-1].timed
    if (match := (_ROW if timed else _RATE).match(text)) is not None:
        if line.cut and match.end(match.lastindex or 0) == len(text):
            return  # the last number may have lost digits
        kernel = match[1].lower()
        table = next((t for t in output.tables if kernel not in t.rows), None)
        if table is None:
            table = _Table(line=line.number, unit=output.tables[0].unit if output.tables else "MB/s")
            output.tables.append(table)
        table.rows[kernel] = (match[2], match[3], match[4], match[5]) if timed else (match[2], "", "", "")
        if kernel in ("read", "write"):
            output.variant = "microsoft"
    elif (match := _TABLE.match(text)) is not None:
        unit = match[1].replace("mb/s", "MB/s").replace("KB/s", "kB/s")
        output.headed = False
        unit = unit if unit in UNITS else "MB/s"
        output.tables.append(_Table(line=line.number, unit=unit, timed=match[2] is not None))
    elif text.startswith(("Solution Validates", "Failed Validation")):
        _read_verdict(output, text)
    else:
        _read_fact(output, text)


def _read_verdict(output: _Output, text: str) -> None:
    failed = text.startswith("Failed")
    if failed:  # one line per array
        judged = [t for t in output.tables if t.verdict == "failed"]
        if judged and len(output.tables) == 1:
            return
    table = next((t for t in output.tables if not t.verdict and t.rows), None)
    if table is not None:
        table.verdict = "failed" if failed else "passed"
        table.reason = excerpt(text) if failed else ""


def _read_fact(output: _Output, text: str) -> None:
    facts = output.facts
    if text.startswith(_OF_MICROSOFT):
        output.variant = "microsoft"
        facts["vector_megabytes"] = text.removeprefix(_OF_MICROSOFT).split()[0]
    elif (match := _MICROSOFT.match(text)) is not None:
        key = {"threads": "threads_requested", "Iterations": "repetitions", None: "cores"}[match[2]]
        facts[key] = int(match[1] or match[3])
    elif (match := _VERSION.match(text)) is not None:
        output.version = match[1]
        if text.startswith("NVIDIA"):
            output.variant = "nvidia"
    elif text.startswith("STREAM Benchmark implementation in"):
        if output.variant == "mccalpin":
            output.variant = "cuda" if "CUDA" in text else excerpt(text.rsplit(" ", 1)[-1], 20).lower()
        if output.variant == "nvidia":
            facts.setdefault("bytes_per_element", 8)
    elif (match := _BYTES.match(text)) is not None:
        facts["bytes_per_element"] = int(match[1])
    elif (match := _SIZE.match(text)) is not None:
        facts["array_size"] = int(match[1])
        if "(double)" in text:
            facts["bytes_per_element"] = 8
    elif (match := _MEGABYTES.match(text)) is not None:
        facts["array_megabytes"] = float(match[2])
        facts["bytes_per_element"] = 8 if match[1] == "double" else 4
    elif (match := _THREADS.match(text)) is not None:
        facts[f"threads_{match[1]}"] = int(match[2])
    elif (match := _TIMES.search(text)) is not None:
        facts["repetitions"] = int(match[1])
    elif (match := _TESTS.match(text)) is not None:
        facts["tests"] = match[1].strip()
    elif text.startswith("Device Selected"):
        facts["device"] = excerpt(text.removeprefix("Device Selected"))


def _result(block: Block, output: _Output, table: _Table) -> Run:
    draft = _draft(block, output, table.line)
    for kernel, (rate, mean_s, min_s, max_s) in table.rows.items():
        draft.reading(kernel, rate, table.unit, Direction.HIGHER, registered="memory_bandwidth", phase=kernel)
        for which, printed in (("average", mean_s), ("minimum", min_s), ("maximum", max_s)):
            draft.reading(f"{kernel}_{which}_time", printed, "s", Direction.LOWER, phase=kernel)
    _judge(draft, output, table)
    if len(output.tables) > 1:
        draft.warnings.append(
            f"{len(output.tables)} tables without rank labels interleave: rows are matched in their order"
        )
    if not table.verdict and draft.ok:
        draft.warnings.append("this variant prints no validation of its result")
    if not table.timed:
        draft.warnings.append("the columns behind the rates have no head and are not read")
    return draft.run()


def _judge(draft: Draft, output: _Output, table: _Table) -> None:
    if table.verdict == "failed":
        draft.refuse(table.reason)
    if missing := [kernel for kernel in output.expected() if kernel not in table.rows]:
        draft.lacks(f"no row for {', '.join(missing)}")
    present = {metric.phase for metric in draft.metrics if metric.name == metric.phase}
    for kernel, (rate, mean_s, min_s, max_s) in table.rows.items():
        if kernel not in present:
            draft.refuse(f"{kernel}: the rate is {rate}")
        if not between(min_s, mean_s, max_s):
            draft.refuse(f"{kernel}: the mean time {mean_s} s is not between {min_s} s and {max_s} s")
    for metric in draft.metrics:
        draft.refuse_impossible([metric])
        if draft.ok and metric.name == metric.phase:
            draft.refuse(_contradicted(output.facts, table, metric.name))
    if draft.ok and not table.verdict and output.variant == "mccalpin":
        words = draft.block.last_words()
        draft.settle(RunStatus.TRUNCATED, f"no validation follows the table; the log ends with: {words}")


def _contradicted(facts: dict[str, Parameter], table: _Table, kernel: str) -> str | None:
    size, width, megabytes = (facts.get(k) for k in ("array_size", "bytes_per_element", "array_megabytes"))
    if isinstance(size, int) and isinstance(width, int):
        array_bytes = float(size * width)
    elif isinstance(megabytes, float):
        array_bytes = megabytes * 1e6
    else:
        return None
    rate, _, min_s, _ = table.rows[kernel]
    work = _ARRAYS[kernel] * array_bytes / float(UNITS[table.unit][1])
    why = contradiction(work, rate, min_s, table.unit)
    return f"{kernel}: {why}" if why else None
