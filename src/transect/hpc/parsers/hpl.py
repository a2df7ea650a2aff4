"""HPL, the High-Performance Linpack: netlib, Intel, AMD and NVIDIA builds.

Results are read from the result rows, never from the header: NVIDIA's build rewrites N, and a
header lists all values of a sweep. The rate is recomputed from N and time with HPL's own count,
(2/3 N + 3/2) N^2 operations (HPL_pdtest.c).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parameter, Parser, Proof, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, contradiction, number

_ROW = re.compile(
    r"(W[A-Za-z0-9]{2,20})\s+(?:(\S{1,12})\s+)?"
    r"(\d{1,12})\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
    rf"\s+({NUMBER})\s+({NUMBER})(?:\s*\(\s*({NUMBER})\s*\))?\s*$"
)
_RESIDUAL = re.compile(rf"\|\|Ax-b\|\|[^=]{{0,120}}=\s*({NUMBER})\s*\.{{3,}}\s*(PASSED|FAILED)")
_HEADER = re.compile(
    r"(N|NB|P|Q|PMAP|PFACT|NBMIN|NDIV|RFACT|BCAST|DEPTH|SWAP|L1|U|EQUIL|ALIGN)"
    r"(\s{0,12}):\s{0,12}(\S.*)"
)
_BANNER = re.compile(
    r"HPLinpack\s+(\S{1,20})"
    r"|(HPL-NVIDIA|HPL-AMD|rocHPL|ROCm HPL)\s+(?:[Vv]ersion:?\s*)?v?(\S{1,20})"
)
_THRESHOLD = re.compile(rf"- Computational tests pass if scaled residuals are less than\s+({NUMBER})")
_COUNT = re.compile(r"(\d{1,9}) tests (completed and (?:passed|failed)|skipped)")
_DIGITS = re.compile(r"\d{1,12}(?:\s+\d{1,12})*$")
_STOPS = re.compile(r"HPL ERROR|>>>|problem size too large|!!!! (?:ERROR|FATAL)", re.IGNORECASE)
_NUMBERS = ("N", "NB", "P", "Q")
# Every combination of these lists is one test; P and Q go in pairs.
_SWEPT = ("N", "NB", "P", "PFACT", "NBMIN", "NDIV", "RFACT", "BCAST", "DEPTH")


def hpl_gflop(n: int) -> float:
    """Operations that HPL counts for order `n`, in 10^9."""
    return (2.0 / 3.0 * n + 1.5) * n * n / 1e9


@dataclass(kw_only=True, slots=True)
class _Row:
    line: int
    cells: tuple[str | None, ...]
    cut: bool
    residuals: list[tuple[str, str]] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class _Section:
    """What one start of the program printed."""

    line: int
    variant: str = "netlib"
    version: str = ""
    build: str = ""
    header: dict[str, list[str]] = field(default_factory=dict)
    threshold: str = ""
    rows: list[_Row] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    stops: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    trouble: str = ""
    ended: bool = False
    last_key: str = ""

    def begun(self) -> bool:
        return bool(self.header or self.rows or self.stops or self.ended)

    def expected(self) -> int | None:
        """How many tests the header announces, or None when it does not say."""
        if "N" not in self.header:
            return None
        return math.prod(len(self.header.get(key, ["one"])) for key in _SWEPT)


@PARSERS.register("hpl")
class Hpl(Parser):
    """Reads result rows and their residual checks."""

    benchmark = "hpl"
    description = "High-Performance Linpack: netlib, Intel, AMD and NVIDIA builds"
    proof = Proof(
        identity="`HPLinpack 2.3`, NVIDIA's or AMD's banner, the head of the table, Intel's progress lines, `HPL ERROR`",
        success="a result row with `PASSED` residuals below the threshold; the rate agrees with N and time",
        failure="a `FAILED` residual, none at all although the log ended, a row that is no number or contradicts itself",
    )
    programs = (r"xhpl(?:[\-_.][\w.\-]{1,40})?", r"hpl(?:-nvidia)?\.sh", r"(?:run)?rochpl", r"mpirun_rochpl")
    starts = (
        r"HPLinpack[ \t]+\d",
        r"HPL-(?:NVIDIA|AMD)[ \t]+v?\d",
        r"T/V[ \t]+(?:\S{1,12}[ \t]+)?N[ \t]+NB[ \t]+P[ \t]+Q",
        r"HPL ERROR from process",
        r"Number of Heterogeneous data entries for HPL",
        r"(?:[\w.\-]{1,64}[ \t]*:[ \t]*)?Column=\d+[ \t]+Fraction=",
    )
    wants = (
        *searched(_BANNER, _ROW, _RESIDUAL, _HEADER, _DIGITS, _THRESHOLD, _COUNT, _STOPS),
        r"End of Tests",
        r"\[WARNING\]",
        r"Number of Heterogeneous",
    )

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per result row, and one for the tests that never came."""
        section = _Section(line=block.first.number)
        for line in block:
            text = line.text.strip()
            banner = _BANNER.match(text)
            if (banner and section.begun()) or (section.ended and text.startswith("Number of Het")):
                yield from self._close(block, section)
                section = _Section(line=line.number)
            self._read(section, line, text, banner)
        yield from self._close(block, section)

    def _read(self, section: _Section, line: Line, text: str, banner: re.Match[str] | None) -> None:
        if banner is not None:
            if banner[1] is not None:
                section.version = banner[1]
            else:
                section.variant = "nvidia" if "NVIDIA" in banner[2] else "amd"
                section.build = banner[3]
        elif (row := _ROW.match(text)) is not None:
            if row[2] is not None and not row[2].isdigit():
                section.variant = "amd"
            section.rows.append(_Row(line=line.number, cells=row.groups(), cut=line.cut))
        elif (match := _RESIDUAL.match(text)) is not None:
            if section.rows:
                section.rows[-1].residuals.append((match[1], match[2]))
        elif (match := _HEADER.match(text)) is not None:
            _read_header(section, match)
        elif _DIGITS.match(text) and section.last_key in _NUMBERS and not section.rows:
            section.header[section.last_key] += text.split()
        elif (match := _THRESHOLD.match(text)) is not None:
            section.threshold = match[1]
        elif (match := _COUNT.match(text)) is not None:
            section.counts[match[2]] = int(match[1])
        elif text.startswith("End of Tests"):
            section.ended = True
        elif _STOPS.match(text):
            section.stops.append(excerpt(text))
        elif text.startswith("[WARNING]"):
            section.warnings.append(excerpt(text))
        elif text.startswith("Number of Heterogeneous"):
            section.variant = "intel"

    def _close(self, block: Block, section: _Section) -> Iterator[Run]:
        section.trouble = block.take_trouble()
        for row in section.rows:
            yield _result(block, section, row)
        draft = _draft(block, section, section.line)
        _judge_missing(draft, section)
        if not draft.ok:
            yield draft.run()


def _draft(block: Block, section: _Section, line: int) -> Draft:
    return Draft(
        block=block,
        line=line,
        variant=section.variant,
        version=section.build or section.version,
        parameters=_header_parameters(section),
        warnings=section.warnings[:20],
        stops=[*section.stops[:3], section.trouble],
    )


def _read_header(section: _Section, match: re.Match[str]) -> None:
    key, gap, value = match[1], match[2], match[3].strip()
    if section.rows or (key in _NUMBERS and not _DIGITS.match(value)):
        return
    if key == "N" and len(gap) >= 8 and section.variant == "netlib":
        section.variant = "intel"  # its header is two columns wider
    section.header[key] = value.split() if key in _SWEPT or key == "Q" else [value]
    section.last_key = key


def _header_parameters(section: _Section) -> dict[str, Parameter]:
    out: dict[str, Parameter] = {}
    for key, values in section.header.items():
        if key in _NUMBERS:
            out[key] = [int(v) for v in values] if len(values) > 1 else int(values[0])
        else:
            out[key] = values if len(values) > 1 else values[0]
    if section.build:
        out["hplinpack"] = section.version
    return out


def _judge_missing(draft: Draft, section: _Section) -> None:
    """Judge the tests that the log announces but does not hold; nothing is missing of an `ok` draft."""
    done, expected = len(section.rows), section.expected()
    if section.ended:
        if done:
            return
        if draft.stop:
            draft.settle(RunStatus.FAILED, f"stopped without a result: {draft.stop}")
        skipped = section.counts.get("skipped", 0)
        said = f", {skipped} tests skipped because of illegal input values" if skipped else ""
        draft.empty(f"the log ends in 'End of Tests' without a result row{said}")
    elif section.stops or not done or (expected is not None and done < expected):
        of = f" of {expected}" if expected is not None else ""
        draft.ends(f"after {done}{of} results")


def _result(block: Block, section: _Section, row: _Row) -> Run:
    tv, swap, n, nb, p, q, time_s, gflops, per_gpu = row.cells
    assert tv and n and nb and p and q and time_s and gflops
    order, higher, lower = int(n), Direction.HIGHER, Direction.LOWER
    residual = max((r for r, _ in row.residuals), key=lambda r: number(r) or 0.0, default="")
    draft = _draft(block, section, row.line)
    if not row.cut:
        draft.reading("gflops", gflops, "GFLOP/s", higher, registered="flops")
        draft.reading("time", time_s, "s", lower, registered="benchmark_time")
        draft.reading("residual", residual, "1", lower, registered="residual")
        draft.reading("gflops_per_gpu", per_gpu, "GFLOP/s", higher)
    _judge(draft, section, row)
    draft.parameters.update(tv=tv, N=order, NB=int(nb), P=int(p), Q=int(q))
    if swap is not None:
        draft.parameters["SWP"] = swap
    if residual:
        checks = [f"{value} {verdict}" for value, verdict in row.residuals[:8]]
        draft.parameters["residual_checks"] = checks
    if not section.ended:
        draft.warnings.append(f"no 'End of Tests': the log ends with: {block.last_words()}")
    announced = section.header.get("N")
    if announced and n not in announced:
        said = " ".join(announced[:9])
        draft.warnings.append(f"N was rewritten: the header says {said}, the result {n}")
    return draft.run()


def _judge(draft: Draft, section: _Section, row: _Row) -> None:
    _, _, n, _, _, _, time_s, gflops, _ = row.cells
    assert n and time_s and gflops
    if row.cut:
        draft.settle(RunStatus.TRUNCATED, "the log ends within the result row")
    limit = number(section.threshold)
    for printed, verdict in row.residuals:
        value = number(printed)
        if verdict == "FAILED" or value is None:
            draft.refuse(f"residual check: {printed} {verdict}")
        elif limit is not None and value >= limit > 0:
            draft.refuse(f"residual {printed} PASSED, but the threshold is {section.threshold}")
    if number(gflops) is None or number(time_s) is None:
        draft.refuse(f"not a number in the result row: time {time_s}, Gflops {gflops}")
    draft.refuse_impossible()
    if draft.ok and (why := contradiction(hpl_gflop(int(n)), gflops, time_s, "GFLOP/s")) is not None:
        draft.refuse(f"{why} (N = {n})")
    if draft.ok and not row.residuals:
        if section.ended:
            draft.refuse("no residual check: the result is not verified")
        words = f"the log ends with: {draft.block.last_words()}"
        draft.settle(RunStatus.TRUNCATED, f"no residual check follows the result row: {words}")
