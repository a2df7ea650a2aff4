"""NAS Parallel Benchmarks: MPI, OpenMP, serial and multi-zone versions 2 to 4.

The rate is recomputed from class size, iterations and time with the programs' own counts (the
`mflops` formulas in bt.f, cg.f, ep.f, ft.f, is.c, lu.f, mg.f, sp.f).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.hpc.base import PARSERS, LogMetric, Proof, Run
from transect.hpc.draft import Draft
from transect.hpc.parsers._network import Column, NetworkOutput, NetworkParser, agree, cell_metric, whole
from transect.hpc.rules import rule, sets
from transect.hpc.text import Line, excerpt
from transect.hpc.values import impossible, last_digit, number

_NAME = r"(?:BT|CG|EP|FT|IS|LU|MG|SP|UA|DC|DT|LU-HP)(?:-MZ|-IO)?"
_DONE = re.compile(rf"({_NAME}) Benchmark Completed")
_TITLE = "NAS Parallel"
_DIMENSIONS = re.compile(r"(\d{1,9})\s*x\s*(\d{1,9})(?:\s*x\s*(\d{1,9}))?$")
_COUNTS = {
    "Total threads": "threads",
    "Total processes": "processes",
    "Avail threads": "avail_threads",
    "Compiled procs": "compiled_procs",
    "Active processes": "active_processes",
    "threads requested": "threads_requested",
    "Iterations": "iterations",
    "Total number of processes": "processes",
    "Num zones": "num_zones",
}
_RATES = re.compile(r"Mop/s/(thread|process|core|proc)$")
# Nonzeros per row by class (NPB, npbparams.h).
_NONZER = {"S": 7, "W": 8, "A": 11, "B": 13, "C": 15, "D": 21, "E": 26}
_KEPT = re.compile(
    r"Class|Size|Iterations|Time in seconds|(?:Total|Avail) threads|Total processes|Compiled procs|Active processes"
    r"|Mop/s(?: total|/thread|/process|/core|/proc)|Operation type|Verification|Version|Compile date|Threads requested"
    r"|Num zones|CPU Time"
)


@dataclass(kw_only=True)
class _Result(NetworkOutput):
    name: str = ""
    titled: bool = False
    completed: bool = False
    pairs: dict[str, str] = field(default_factory=dict)
    verdict: str = ""
    width: int = 0

    def begins(self, text: str) -> bool:
        """Tell whether a title, or an end where the title is lost, belongs to the next program."""
        if text.startswith(_TITLE):
            return self.titled or self.completed
        return self.completed and _DONE.match(text) is not None

    @rule(
        rf"{_TITLE}(?: Benchmarks\s*\(?(?:NPB)?\s*(\d[\d.]{{0,9}})?[\s\-]{{0,3}}([^)]{{0,40}}?)\)?\s+-{{1,2}}\s+"
        rf"({_NAME}) Benchmark)?",
        wanted="",
    )
    def title(self, match: re.Match[str], line: Line) -> None:
        self.titled = True
        if match[3] is not None:
            self.version, self.name = match[1] or "", match[3]
            self.variant = re.sub(r"[\s+]+", "-", match[2].strip(" -").lower())

    @rule(_DONE)
    def done(self, match: re.Match[str], line: Line) -> None:
        self.completed, self.name = True, match[1]

    @rule(r"([A-Za-z][A-Za-z/ ]{2,24}?)\s*=\s*(\S.{0,80})$", wanted=rf"(?:{_KEPT.pattern})[ \t/=:\w]{{0,30}}=")
    def pair(self, match: re.Match[str], line: Line) -> bool:
        key, value = match[1].strip(), match[2].strip()
        # The values end in one column.
        kept = _KEPT.fullmatch(key) is not None
        if kept and self.completed and whole(line, self.width):
            self.width = len(line.text.rstrip())
            self.pairs.setdefault(key, value)
        return kept

    @rule(r"(?:VERIFICATION|Verification) (FAILED|SUCCESSFUL|PERFORMED|failed|successful)")
    def verification(self, match: re.Match[str], line: Line) -> None:
        self.verdict = self.verdict or match[1].upper()

    failed = sets(r"Full verification:? (?:failed|error)", "verdict", "FAILED")

    def runs(self) -> Iterator[Run]:
        if not (self.titled or self.completed):
            return
        pairs = self.pairs
        draft = self.draft(
            variant=_variant(self),
            version=pairs.get("Version", "")[:20] or self.version,
            stops=[*self.stops, self.block.take_trouble()],
        )
        problem = _fill(self, draft.metrics)
        _judge(draft, self, problem)
        parameters = draft.parameters
        parameters["benchmark"] = self.name
        if "Class" in pairs:
            parameters["class"] = pairs["Class"][:8]
        if "Size" in pairs:
            parameters["size"] = re.sub(r"\s+", "", pairs["Size"])[:40]
        for key, name in _COUNTS.items():
            if (value := pairs.get(key, "")).isdecimal() and len(value) < 19:
                parameters[name] = int(value)
        for key, name in (("Operation type", "operation_type"), ("Compile date", "compile_date")):
            if key in pairs:
                parameters[name] = excerpt(pairs[key], 60)
        if "Verification" in pairs:
            parameters["verification"] = excerpt(pairs["Verification"], 40)
        asked, had = pairs.get("Total threads", ""), pairs.get("Avail threads", "")
        if asked and had and asked != had:
            draft.warnings.append(f"{asked} threads ran, {had} were available")
        draft.warn_stop("after the result")
        yield draft.run()


@PARSERS.register("npb")
class Npb(NetworkParser):
    """Reads the block of results that each program prints at its end."""

    benchmark = "npb"
    description = "NAS Parallel Benchmarks: all kernels, MPI, OpenMP, serial, multi-zone"
    validity_notes = Proof(
        identity="`NAS Parallel Benchmarks`, or `CG Benchmark Completed`",
        success="`Verification = SUCCESSFUL`; the rate agrees with the operations of its class and the time",
        failure="any other verification, a rate that is no number or that time and operations refute",
    )
    programs = (r"(?:bt|cg|dc|dt|ep|ft|is|lu|mg|sp|ua)(?:-mz)?\.[SWABCDEF](?:\.(?:x|\d{1,7}))?",)
    output = _Result
    start_patterns = (r"NAS Parallel Benchmarks?[ \t]*(?:\(NPB|\d\.\d|NPB)", rf"{_NAME} Benchmark Completed")
    also = (*start_patterns, *NetworkParser.also)


def _variant(result: _Result) -> str:
    if result.variant:
        return result.variant
    for key, name in (("Total threads", "omp"), ("Total processes", "mpi")):
        if key in result.pairs:
            return name
    # Up to 3.3 the title of the MPI version names no model: `NAS Parallel Benchmarks 3.3 --`.
    return "mpi" if result.titled and result.version and not result.pairs else ""


def _judge(draft: Draft, result: _Result, problem: str) -> None:
    draft.mark_invalid(problem)
    verdict = result.pairs.get("Verification", "")
    if verdict.startswith("SUCCESSFUL") and result.verdict != "FAILED":
        return
    if verdict or result.verdict == "FAILED":
        draft.mark_invalid(f"verification: {excerpt(verdict or result.verdict, 60)}")
    draft.mark_truncated("within the results" if result.completed else "before the results")


def _fill(result: _Result, metrics: list[LogMetric]) -> str:
    pairs, problem = result.pairs, ""
    columns = {
        "Mop/s total": Column("mops_total", "Mop/s", "operation_rate"),
        "Time in seconds": Column("time", "s", "benchmark_time"),
    }
    each = next((key for key in pairs if _RATES.match(key)), "")
    if each:
        columns[each] = Column(f"mops_per_{each.rsplit('/', 1)[1]}", "Mop/s")
    for key, column in columns.items():
        if (printed := pairs.get(key)) is None:
            continue
        try:
            metric = cell_metric(column, printed)
        except ArithmeticError:
            metric = None
        if metric is None:
            problem = problem or f"{key} is {excerpt(printed, 30)}"
            continue
        metrics.append(metric)
        if (why := impossible(metric)) is not None:
            problem = problem or why
    return problem or _contradiction(result, each)


def _contradiction(result: _Result, each: str) -> str:
    pairs = result.pairs
    total, time = pairs.get("Mop/s total", ""), pairs.get("Time in seconds", "")
    count = number(pairs.get("Total processes") or pairs.get("Total threads") or "")
    if each and total and count and number(total):
        ends = [end * count for end in last_digit(pairs[each])]
        if not agree(total, *ends):
            return (
                f"the log prints {total} Mop/s in total, but {pairs[each]} each times {count:g} "
                f"is {(number(pairs[each]) or 0) * count:.6g}"
            )
    work = npb_mop(result.name, pairs.get("Class", ""), pairs.get("Size", ""), pairs.get("Iterations", ""))
    low, high = last_digit(time) if time else (0.0, 0.0)
    if work is None or high <= 0 or not total:
        return ""
    if not agree(total, work / high, work / low if low > 0 else math.inf, 1e-2):
        return (
            f"the log prints {total} Mop/s, but the {work:.6g} million operations of "
            f"{result.name} over {time} s are {work / (number(time) or high):.6g} Mop/s"
        )
    return ""


def npb_mop(name: str, klass: str, size: str, iterations: str) -> float | None:
    """Operations that a benchmark counts, in 10^6; None where that takes more than the log has."""
    niter = number(iterations)
    numbers = _DIMENSIONS.match(size.strip())
    if niter is None:
        return None
    if numbers is None:
        whole = number(size)
        if whole is None or whole <= 0:
            return None
        if name == "EP":
            return whole / 1e6
        if name == "IS":
            return niter * whole / 1e6
        if name == "CG" and (nonzer := _NONZER.get(klass)):
            inner = nonzer * (nonzer + 1.0)
            return 2 * niter * whole * (3 + inner + 25 * (5 + inner) + 3) / 1e6
        return None
    x, y, z = (float(numbers[i] or 1) for i in (1, 2, 3))
    cells, mean = x * y * z, (x + y + z) / 3
    if name == "BT":
        return niter * (3478.8 * cells - 17655.7 * mean**2 + 28023.7 * mean) / 1e6
    if name == "SP":
        return niter * (881.174 * cells - 4683.91 * mean**2 + 11484.5 * mean - 19272.4) / 1e6
    if name == "LU":
        return niter * (1984.77 * cells - 10923.3 * mean**2 + 27770.9 * mean - 144010.0) / 1e6
    if name == "MG":
        return 58 * niter * cells / 1e6
    if name == "FT" and cells > 1:
        log = math.log(cells)
        return cells * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * niter) / 1e6
    return None
