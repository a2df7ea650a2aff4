"""STREAM: McCalpin's C and Fortran versions, NVIDIA-STREAM and the CUDA port.

The rate is recomputed as the program counts it: copy and scale move two arrays, add and triad
three (https://www.cs.virginia.edu/stream/ref.html, "counting bytes and FLOPS").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, LogMetric, Parameter, Parser, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, UNITS, contradiction, impossible, log_metric

__all__ = ["Stream"]

_ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
_ROW = re.compile(
    rf"(Copy|Scale|Add|Triad)\s*:\s*"
    rf"({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})",
    re.IGNORECASE,
)
_TABLE = re.compile(r"Function\s+(?:Best )?Rate\s*\(?([kKMGT]i?B/s)\)?", re.IGNORECASE)
_VERSION = re.compile(r"(?:STREAM version \$Revision:\s*|NVIDIA-STREAM\s+v?)([\w.]{1,20})")
_BYTES = re.compile(r"This system uses\s+(\d{1,4}) bytes per")
_SIZE = re.compile(r"(?:Total Aggregate )?Array size\s*(?:\(double\))?\s*=\s*(\d{1,16})(?![\d.])")
_MEGABYTES = re.compile(
    r"Array size \((double|single) precision\)\s*=\s*(\d{1,12}(?:\.\d{1,9})?)\s*MB"
)
_THREADS = re.compile(r"Number of Threads (requested|counted)\s*=\s*(\d{1,9})")
_TIMES = re.compile(r"Each (?:kernel|test) (?:will be executed|is run)\s+(\d{1,9}) times")
_TESTS = re.compile(r"STREAM tests:\s*([A-Z ]{4,60})")
_HEADS = ("STREAM version", "NVIDIA-STREAM", "STREAM Benchmark implementation")
_MOST_OPEN = 4096


@dataclass(kw_only=True, slots=True)
class _Table:
    line: int
    unit: str
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
        return named or list(_ARRAYS)


@PARSERS.register("stream")
class Stream(Parser):
    """Reads tables of rates and their verdicts."""

    benchmark = "stream"
    description = "STREAM: McCalpin's C version, NVIDIA-STREAM, the CUDA port"
    programs = (
        r"stream(?:[_\-][\w.\-]{1,30})?(?:\.exe)?",
        r"stream\.x",
    )
    starts = (
        r"STREAM version \$Revision",
        r"NVIDIA-STREAM[ \t]+v?\d",
        r"STREAM Benchmark implementation in",
        r"This system uses[ \t]+\d+ bytes per (?:array element|DOUBLE PRECISION|SINGLE PRECISION)",
        r"Function[ \t]+(?:Best )?Rate[ \t]*\(?[kKMGT]i?B/s",
    )
    wants = (
        *starts,
        r"(?:Copy|Scale|Add|Triad)[ \t]*:[ \t]",
        r"(?:Total Aggregate )?Array size",
        r"Number of Threads",
        r"Each (?:kernel|test)",
        r"Solution Validates",
        r"Failed Validation",
        r"STREAM tests:",
        r"Device Selected",
    )

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per table. Tables of labelled ranks are kept apart."""
        outputs: dict[int | None, _Output] = {}
        for line in block:
            output = outputs.setdefault(line.rank, _Output(line=line.number))
            text = line.text.strip()
            if text.startswith(_HEADS) or (not output.headed and _BYTES.match(text)):
                # A second header after rows: the run before is over, unless several interleave.
                if any(t.rows for t in output.tables) and output.heads <= 1:
                    yield from self._close(block, output, False)
                    output = outputs[line.rank] = _Output(line=line.number)
                output.heads += 1
                output.headed = True
            _read(output, line, text)
            if len(output.tables) > _MOST_OPEN or _whole(output):
                yield from self._close(block, output, False)
                del outputs[line.rank]
        for output in outputs.values():
            yield from self._close(block, output, True)

    def _close(self, block: Block, output: _Output, over: bool) -> Iterator[Run]:
        if not output.tables and output.headed:
            trouble = block.take_trouble()
            yield Run(
                file=block.file, line=output.line, benchmark=self.benchmark, variant=output.variant,
                version=output.version, parameters=output.facts,
                status=RunStatus.FAILED if trouble else RunStatus.TRUNCATED,
                reason=trouble or f"ends before the table of results, with: {block.last_words()}",
            )  # fmt: skip
        for table in output.tables:
            yield _result(block, output, table, len(output.tables))


def _whole(output: _Output) -> bool:
    """Tell whether the one open table has all its rows and its verdict."""
    return len(output.tables) == 1 and output.heads <= 1 and output.tables[0].verdict == "passed"


def _read(output: _Output, line: Line, text: str) -> None:
    if (match := _ROW.match(text)) is not None:
        kernel = match[1].lower()
        table = next((t for t in output.tables if kernel not in t.rows), None)
        if table is None:
            table = _Table(
                line=line.number, unit=output.tables[0].unit if output.tables else "MB/s"
            )
            output.tables.append(table)
        table.rows[kernel] = (match[2], match[3], match[4], match[5])
    elif (match := _TABLE.match(text)) is not None:
        unit = match[1].replace("mb/s", "MB/s").replace("KB/s", "kB/s")
        output.headed = False
        output.tables.append(_Table(line=line.number, unit=unit if unit in UNITS else "MB/s"))
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
    if (match := _VERSION.match(text)) is not None:
        output.version = match[1]
        if text.startswith("NVIDIA"):
            output.variant = "nvidia"
    elif text.startswith("STREAM Benchmark implementation in"):
        if output.variant == "mccalpin":
            output.variant = (
                "cuda" if "CUDA" in text else excerpt(text.rsplit(" ", 1)[-1], 20).lower()
            )
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


def _result(block: Block, output: _Output, table: _Table, together: int) -> Run:
    metrics: list[LogMetric] = []
    for kernel, (rate, mean_s, min_s, max_s) in table.rows.items():
        readings = [
            log_metric(
                kernel,
                rate,
                table.unit,
                Direction.HIGHER,
                registered="memory_bandwidth",
                phase=kernel,
            ),
            *(
                log_metric(f"{kernel}_{which}_time", printed, "s", Direction.LOWER, phase=kernel)
                for which, printed in (("average", mean_s), ("minimum", min_s), ("maximum", max_s))
            ),
        ]
        metrics += [reading for reading in readings if reading is not None]
    status, reason = _judge(block, output, table, metrics)
    warnings = []
    if together > 1:
        warnings.append(
            f"{together} tables without rank labels interleave: rows are matched in their order"
        )
    if not table.verdict and status is RunStatus.OK:
        warnings.append("this variant prints no validation of its result")
    return Run(
        file=block.file, line=table.line, benchmark="stream", variant=output.variant,
        version=output.version, status=status, reason=reason, parameters=dict(output.facts),
        metrics=metrics, warnings=warnings,
    )  # fmt: skip


def _judge(
    block: Block, output: _Output, table: _Table, metrics: list[LogMetric]
) -> tuple[RunStatus, str]:
    if table.verdict == "failed":
        return RunStatus.INVALID, table.reason
    present = {metric.phase for metric in metrics if metric.name == metric.phase}
    missing = [kernel for kernel in output.expected() if kernel not in table.rows]
    if missing:
        trouble = block.take_trouble()
        end = trouble or f"the log ends with: {block.last_words()}"
        reason = f"no row for {', '.join(missing)}: {end}"
        return (RunStatus.FAILED if trouble else RunStatus.TRUNCATED), reason
    for kernel, (rate, *_) in table.rows.items():
        if kernel not in present:
            return RunStatus.INVALID, f"{kernel}: the rate is {rate}"
    for metric in metrics:
        why = impossible(metric)
        if why is None and metric.name == metric.phase:
            why = _contradicted(output.facts, table, metric.name)
        if why is not None:
            return RunStatus.INVALID, why
    if not table.verdict and output.variant == "mccalpin":
        return (
            RunStatus.TRUNCATED,
            f"no validation follows the table; the log ends with: {block.last_words()}",
        )
    return RunStatus.OK, ""


def _contradicted(facts: dict[str, Parameter], table: _Table, kernel: str) -> str | None:
    size, width, megabytes = (
        facts.get(k) for k in ("array_size", "bytes_per_element", "array_megabytes")
    )
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
