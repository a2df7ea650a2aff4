"""STREAM: McCalpin's C and Fortran versions, NVIDIA-STREAM, the CUDA port and Microsoft's.

The rate is recomputed as the program counts it: copy and scale move two arrays, add and triad
three (https://www.cs.virginia.edu/stream/ref.html, "counting bytes and FLOPS").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.hpc.base import PARSERS, Parameter, Proof, Run, RunStatus
from transect.hpc.draft import Draft
from transect.hpc.parsers._network import between
from transect.hpc.rules import Output, RankParser, notes, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, UNITS, contradiction

_ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
_BYTES = re.compile(r"This system uses\s+(\d{1,4}) bytes per")
_OF_MICROSOFT = "Read and write vector size is"
_HEADS = ("STREAM version", "NVIDIA-STREAM", "STREAM Benchmark implementation", _OF_MICROSOFT)


@dataclass(kw_only=True, slots=True)
class _Table:
    line: int
    unit: str
    timed: bool = True  # whether times stand behind the rates
    rows: dict[str, tuple[str, str, str, str]] = field(default_factory=dict)
    verdict: str = ""
    reason: str = ""


@dataclass(kw_only=True)
class _Output(Output):
    """What one rank (or all of them, without rank labels) has printed so far."""

    variant: str = "mccalpin"
    heads: int = 0
    headed: bool = False  # a header that no table has followed yet
    tables: list[_Table] = field(default_factory=list)

    def expected(self) -> list[str]:
        tests = self.facts.get("tests")
        named = [kernel for kernel in str(tests).lower().split() if kernel in _ARRAYS] if tests else []
        return named or [*_ARRAYS, *(("read", "write") if self.variant == "microsoft" else ())]

    def _is_head(self, text: str) -> bool:
        return text.startswith(_HEADS) or (not self.headed and _BYTES.match(text) is not None)

    def begins(self, text: str) -> bool:
        """Tell whether a second header follows rows: the run before is over, unless several interleave."""
        return self._is_head(text) and any(t.rows for t in self.tables) and self.heads <= 1

    def read(self, line: Line, text: str) -> None:
        """Count the heads, whatever they say; the one open table with all its rows and its verdict ends it."""
        if self._is_head(text):
            self.heads += 1
            self.headed = True
        super().read(line, text)
        alone = len(self.tables) == 1 and self.heads <= 1
        self.ended = alone and self.tables[0].verdict == "passed"

    @rule(rf"(Copy|Scale|Add|Triad)\s*:\s*({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})", re.IGNORECASE)
    def row(self, match: re.Match[str], line: Line) -> bool:
        return self._row(match, line, timed=True)

    # Under a head without times: what stands behind the rate has no name.
    @rule(rf"(Read|Copy|Scale|Add|Triad|Write)\s*:\s*({NUMBER})(?:\s+{NUMBER}){{0,12}}$", re.IGNORECASE)
    def rate(self, match: re.Match[str], line: Line) -> bool:
        return self._row(match, line, timed=False)

    def _row(self, match: re.Match[str], line: Line, *, timed: bool) -> bool:
        if timed != (not self.tables or self.tables[-1].timed):
            return False
        kernel = match[1].lower()
        table = next((t for t in self.tables if kernel not in t.rows), None)
        if table is None:
            table = _Table(line=line.number, unit=self.tables[0].unit if self.tables else "MB/s")
            self.tables.append(table)
        table.rows[kernel] = (match[2], match[3], match[4], match[5]) if timed else (match[2], "", "", "")
        if kernel in ("read", "write"):
            self.variant = "microsoft"
        return True

    @rule(r"Function\s+(?:Best )?Rate\s*\(?([kKMGT]i?B/s)\)?(?:.{0,60}?(time))?", re.IGNORECASE, wanted="")
    def table_head(self, match: re.Match[str], line: Line) -> None:
        unit = match[1].replace("mb/s", "MB/s").replace("KB/s", "kB/s")
        self.headed = False
        unit = unit if unit in UNITS else "MB/s"
        self.tables.append(_Table(line=line.number, unit=unit, timed=match[2] is not None))

    @rule(r"(?:Solution Validates|Failed Validation).*")
    def verdict(self, match: re.Match[str], line: Line) -> None:
        failed = match[0].startswith("Failed")
        if failed and len(self.tables) == 1 and self.tables[0].verdict == "failed":
            return  # one line per array
        table = next((t for t in self.tables if not t.verdict and t.rows), None)
        if table is not None:
            table.verdict = "failed" if failed else "passed"
            table.reason = excerpt(match[0]) if failed else ""

    @rule(rf"{_OF_MICROSOFT} *(\S*)", wanted="")
    def vector(self, match: re.Match[str], line: Line) -> None:
        self.variant = "microsoft"
        self.facts["vector_megabytes"] = match[1]

    @rule(r"(?:Test executed with (\d{1,6}) cores|Number of (threads|Iterations) is (\d{1,9}))")
    def count(self, match: re.Match[str], line: Line) -> None:
        key = {"threads": "threads_requested", "Iterations": "repetitions", None: "cores"}[match[2]]
        self.facts[key] = int(match[1] or match[3])

    @rule(r"(?:STREAM version \$Revision:\s*|(NVIDIA)-STREAM\s+v?)([\w.]{1,20})", wanted="")
    def version_line(self, match: re.Match[str], line: Line) -> None:
        self.version = match[2]
        if match[1]:
            self.variant = "nvidia"

    @rule(r"STREAM Benchmark implementation in.*", wanted="")
    def title(self, match: re.Match[str], line: Line) -> None:
        text = match[0]
        if self.variant == "mccalpin":
            self.variant = "cuda" if "CUDA" in text else excerpt(text.rsplit(" ", 1)[-1], 20).lower()
        if self.variant == "nvidia":
            self.facts.setdefault("bytes_per_element", 8)

    width = notes(_BYTES, "bytes_per_element", int, wanted="")

    @rule(r"(?:Total Aggregate )?Array size\s*(\(double\))?\s*=\s*(\d{1,16})(?![\d.])")
    def size(self, match: re.Match[str], line: Line) -> None:
        self.facts["array_size"] = int(match[2])
        if "(double)" in match.string:
            self.facts["bytes_per_element"] = 8

    @rule(r"Array size \((double|single) precision\)\s*=\s*(\d{1,12}(?:\.\d{1,9})?)\s*MB")
    def megabytes(self, match: re.Match[str], line: Line) -> None:
        self.facts["array_megabytes"] = float(match[2])
        self.facts["bytes_per_element"] = 8 if match[1] == "double" else 4

    @rule(r"Number of Threads (requested|counted)\s*=\s*(\d{1,9})")
    def threads(self, match: re.Match[str], line: Line) -> None:
        self.facts[f"threads_{match[1]}"] = int(match[2])

    repetitions = notes(r"Each (?:kernel|test) (?:will be executed|is run)\s+(\d{1,9}) times", "repetitions", int)

    tests = notes(r"STREAM tests:\s*([A-Z ]{4,60})", "tests", str)

    device = notes(r"Device Selected(.*)", "device")

    def runs(self) -> Iterator[Run]:
        if not self.tables and self.headed:
            draft = self.draft()
            if draft.stop:
                draft.set_status(RunStatus.FAILED, draft.stop)
            draft.mark_cut("ends before the table of results")
            yield draft.run()
        for table in self.tables:
            yield _result(self, table)


@PARSERS.register("stream")
class Stream(RankParser):
    """Reads tables of rates and their verdicts."""

    benchmark = "stream"
    description = "STREAM: McCalpin's C version, NVIDIA-STREAM, the CUDA port, Microsoft's"
    validity_notes = Proof(
        identity="`STREAM version $Revision`, NVIDIA-STREAM, the CUDA port's title, `Read and write vector size is 64.0 MB`, the head of its table",
        success="a row for each kernel and `Solution Validates`; variants that print no verdict need none; rate and time agree with the bytes",
        failure="`Failed Validation`, a rate that is no number or that array size and time refute, a mean time outside of least and most",
    )
    programs = (r"stream(?:[_\-][\w.\-]{1,30})?(?:\.exe)?", r"stream\.x")
    output = _Output
    most_open = 4096
    start_patterns = (
        r"STREAM version \$Revision",
        r"NVIDIA-STREAM[ \t]+v?\d",
        r"STREAM Benchmark implementation in",
        rf"{_OF_MICROSOFT} \d",
        r"This system uses[ \t]+\d+ bytes per (?:array element|DOUBLE PRECISION|SINGLE PRECISION)",
        r"Function[ \t]+(?:Best )?Rate[ \t]*\(?[kKMGT]i?B/s",
    )
    also = start_patterns


def _result(output: _Output, table: _Table) -> Run:
    draft = output.draft(table.line)
    for kernel, (rate, mean_s, min_s, max_s) in table.rows.items():
        draft.add_metric(kernel, rate, table.unit, registered="memory_bandwidth", phase=kernel)
        for which, printed in (("average", mean_s), ("minimum", min_s), ("maximum", max_s)):
            draft.add_metric(f"{kernel}_{which}_time", printed, "s", phase=kernel)
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
        draft.mark_invalid(table.reason)
    if missing := [kernel for kernel in output.expected() if kernel not in table.rows]:
        draft.mark_incomplete(f"no row for {', '.join(missing)}")
    present = {metric.phase for metric in draft.metrics if metric.name == metric.phase}
    for kernel, (rate, mean_s, min_s, max_s) in table.rows.items():
        if kernel not in present:
            draft.mark_invalid(f"{kernel}: the rate is {rate}")
        if not between(min_s, mean_s, max_s):
            draft.mark_invalid(f"{kernel}: the mean time {mean_s} s is not between {min_s} s and {max_s} s")
    for metric in draft.metrics:
        draft.mark_impossible([metric])
        if draft.ok and metric.name == metric.phase:
            draft.mark_invalid(_contradicted(output.facts, table, metric.name))
    if draft.ok and not table.verdict and output.variant == "mccalpin":
        words = draft.block.last_words()
        draft.set_status(RunStatus.TRUNCATED, f"no validation follows the table; the log ends with: {words}")


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
