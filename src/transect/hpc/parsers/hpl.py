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
from transect.hpc.base import PARSERS, Parameter, Proof, Run, RunStatus
from transect.hpc.draft import Draft
from transect.hpc.rules import Output, OutputParser, keeps, rule, sets
from transect.hpc.text import Line
from transect.hpc.values import NUMBER, contradiction, number

_BANNER = re.compile(
    r"HPLinpack\s+(\S{1,20})"
    r"|(HPL-NVIDIA|HPL-AMD|rocHPL|ROCm HPL)\s+(?:[Vv]ersion:?\s*)?v?(\S{1,20})"
)
_DIGITS = re.compile(r"\d{1,12}(?:\s+\d{1,12})*$")
_HETEROGENEOUS = "Number of Heterogeneous"
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
    residuals: list[tuple[str, str]] = field(default_factory=list)


@dataclass(kw_only=True)
class _Output(Output):
    """What one start of the program printed."""

    variant: str = "netlib"
    build: str = ""
    header: dict[str, list[str]] = field(default_factory=dict)
    threshold: str = ""
    rows: list[_Row] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    over: bool = False
    last_key: str = ""

    def begins(self, text: str) -> bool:
        begun = bool(self.header or self.rows or self.stops or self.over)
        return (begun and _BANNER.match(text) is not None) or (self.over and text.startswith(_HETEROGENEOUS))

    @rule(_BANNER)
    def banner(self, match: re.Match[str], line: Line) -> None:
        if match[1] is not None:
            self.version = match[1]
        else:
            self.variant = "nvidia" if "NVIDIA" in match[2] else "amd"
            self.build = match[3]

    @rule(
        r"(W[A-Za-z0-9]{2,20})\s+(?:(\S{1,12})\s+)?"
        r"(\d{1,12})\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
        rf"\s+({NUMBER})\s+({NUMBER})(?:\s*\(\s*({NUMBER})\s*\))?\s*$"
    )
    def row(self, match: re.Match[str], line: Line) -> None:
        if match[2] is not None and not match[2].isdigit():
            self.variant = "amd"
        self.rows.append(_Row(line=line.number, cells=match.groups()))

    @rule(rf"\|\|Ax-b\|\|[^=]{{0,120}}=\s*({NUMBER})\s*\.{{3,}}\s*(PASSED|FAILED)")
    def residual(self, match: re.Match[str], line: Line) -> None:
        if self.rows:
            self.rows[-1].residuals.append((match[1], match[2]))

    @rule(r"(N|NB|P|Q|PMAP|PFACT|NBMIN|NDIV|RFACT|BCAST|DEPTH|SWAP|L1|U|EQUIL|ALIGN)(\s{0,12}):\s{0,12}(\S.*)")
    def setting(self, match: re.Match[str], line: Line) -> None:
        key, gap, value = match[1], match[2], match[3].strip()
        if self.rows or (key in _NUMBERS and not _DIGITS.match(value)):
            return
        if key == "N" and len(gap) >= 8 and self.variant == "netlib":
            self.variant = "intel"  # its header is two columns wider
        self.header[key] = value.split() if key in _SWEPT or key == "Q" else [value]
        self.last_key = key

    @rule(_DIGITS)
    def more_values(self, match: re.Match[str], line: Line) -> None:
        if self.last_key in _NUMBERS and not self.rows:
            self.header[self.last_key] += match[0].split()

    limit = sets(rf"- Computational tests pass if scaled residuals are less than\s+({NUMBER})", "threshold")

    @rule(r"(\d{1,9}) tests (completed and (?:passed|failed)|skipped)")
    def count(self, match: re.Match[str], line: Line) -> None:
        self.counts[match[2]] = int(match[1])

    end = sets(r"End of Tests", "over", True)

    error = keeps(r"(?:HPL ERROR|>>>|problem size too large|!!!! (?:ERROR|FATAL)).*", "stops", flags=re.IGNORECASE)

    warning = keeps(r"\[WARNING\].*", "warnings")

    of_intel = sets(_HETEROGENEOUS, "variant", "intel")

    def runs(self) -> Iterator[Run]:
        trouble = self.block.take_trouble()
        stops = [*self.stops[:3], trouble]
        parameters, version = self.parameters(), self.build or self.version
        for row in self.rows:
            yield _result(self.draft(row.line, parameters=dict(parameters), version=version, stops=stops), self, row)
        draft = self.draft(parameters=parameters, version=version, stops=stops)
        _judge_missing(draft, self)
        if not draft.ok:
            yield draft.run()

    def parameters(self) -> dict[str, Parameter]:
        """Return what the header says; a list of values is one of a sweep."""
        out: dict[str, Parameter] = {}
        for key, values in self.header.items():
            if key in _NUMBERS:
                out[key] = [int(v) for v in values] if len(values) > 1 else int(values[0])
            else:
                out[key] = values if len(values) > 1 else values[0]
        if self.build:
            out["hplinpack"] = self.version
        return out


@PARSERS.register("hpl")
class Hpl(OutputParser):
    """Reads result rows and their residual checks."""

    benchmark = "hpl"
    description = "High-Performance Linpack: netlib, Intel, AMD and NVIDIA builds"
    validity_notes = Proof(
        identity="`HPLinpack 2.3`, NVIDIA's or AMD's banner, the head of the table, Intel's progress lines, `HPL ERROR`",
        success="a result row with `PASSED` residuals below the threshold; the rate agrees with N and time",
        failure="a `FAILED` residual, none at all although the log ended, a row that is no number or contradicts itself",
    )
    programs = (r"xhpl(?:[\-_.][\w.\-]{1,40})?", r"hpl(?:-nvidia)?\.sh", r"(?:run)?rochpl", r"mpirun_rochpl")
    output = _Output
    start_patterns = (
        r"HPLinpack[ \t]+\d",
        r"HPL-(?:NVIDIA|AMD)[ \t]+v?\d",
        r"T/V[ \t]+(?:\S{1,12}[ \t]+)?N[ \t]+NB[ \t]+P[ \t]+Q",
        r"HPL ERROR from process",
        r"Number of Heterogeneous data entries for HPL",
        r"(?:[\w.\-]{1,64}[ \t]*:[ \t]*)?Column=\d+[ \t]+Fraction=",
    )


def _expected(output: _Output) -> int | None:
    """How many tests the header announces, or None when it does not say."""
    if "N" not in output.header:
        return None
    return math.prod(len(output.header.get(key, ["one"])) for key in _SWEPT)


def _judge_missing(draft: Draft, output: _Output) -> None:
    """Judge the tests that the log announces but does not hold; nothing is missing of an `ok` draft."""
    done, expected = len(output.rows), _expected(output)
    if output.over:
        if done:
            return
        if draft.stop:
            draft.set_status(RunStatus.FAILED, f"stopped without a result: {draft.stop}")
        skipped = output.counts.get("skipped", 0)
        note = f", {skipped} tests skipped because of illegal input values" if skipped else ""
        draft.mark_no_result(f"the log ends in 'End of Tests' without a result row{note}")
    elif output.stops or not done or (expected is not None and done < expected):
        of = f" of {expected}" if expected is not None else ""
        draft.mark_truncated(f"after {done}{of} results")


def _result(draft: Draft, output: _Output, row: _Row) -> Run:
    tv, swap, n, nb, p, q, time_s, gflops, per_gpu = row.cells
    assert tv and n and nb and p and q and time_s and gflops
    order = int(n)
    residual = max((r for r, _ in row.residuals), key=lambda r: number(r) or 0.0, default="")
    draft.add_metric("gflops", gflops, "GFLOP/s", registered="flops")
    draft.add_metric("time", time_s, "s", registered="benchmark_time")
    draft.add_metric("residual", residual, "1", Direction.LOWER, registered="residual")
    draft.add_metric("gflops_per_gpu", per_gpu, "GFLOP/s")
    _judge(draft, output, row)
    draft.parameters.update(tv=tv, N=order, NB=int(nb), P=int(p), Q=int(q))
    if swap is not None:
        draft.parameters["SWP"] = swap
    if residual:
        checks = [f"{value} {verdict}" for value, verdict in row.residuals[:8]]
        draft.parameters["residual_checks"] = checks
    if not output.over:
        draft.warnings.append(f"no 'End of Tests': the log ends with: {draft.block.last_words()}")
    announced = output.header.get("N")
    if announced and n not in announced:
        sizes = " ".join(announced[:9])
        draft.warnings.append(f"N was rewritten: the header says {sizes}, the result {n}")
    return draft.run()


def _judge(draft: Draft, output: _Output, row: _Row) -> None:
    _, _, n, _, _, _, time_s, gflops, _ = row.cells
    assert n and time_s and gflops
    limit = number(output.threshold)
    for printed, verdict in row.residuals:
        value = number(printed)
        if verdict == "FAILED" or value is None:
            draft.mark_invalid(f"residual check: {printed} {verdict}")
        elif limit is not None and value >= limit > 0:
            draft.mark_invalid(f"residual {printed} PASSED, but the threshold is {output.threshold}")
    if number(gflops) is None or number(time_s) is None:
        draft.mark_invalid(f"not a number in the result row: time {time_s}, Gflops {gflops}")
    draft.mark_impossible()
    if draft.ok and (why := contradiction(hpl_gflop(int(n)), gflops, time_s, "GFLOP/s")) is not None:
        draft.mark_invalid(f"{why} (N = {n})")
    if draft.ok and not row.residuals:
        if output.over:
            draft.mark_invalid("no residual check: the result is not verified")
        words = f"the log ends with: {draft.block.last_words()}"
        draft.set_status(RunStatus.TRUNCATED, f"no residual check follows the result row: {words}")
