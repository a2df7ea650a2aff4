"""HPL-MxP, formerly HPL-AI: the reference program, NVIDIA, RIKEN and AMD (rocHPL-MxP).

NVIDIA prints two rates; the one to report includes the iterative refinement, the other only the
factorisation. `GFLOPS: AVG =` lines are component tests and no results. The rate is recomputed with
HPL's own count, which all four use (e.g. driver.c of the reference).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Proof, Run
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import differ
from transect.hpc.parsers.hpl import hpl_gflop
from transect.hpc.rules import Output, OutputParser, keeps, rule, sets
from transect.hpc.text import Line
from transect.hpc.values import NUMBER, UNCUT, contradiction, number

_SIZES = ("N", "NB", "P", "Q")

_BANNER = re.compile(r"HPL-(?:MxP|AI)-NVIDIA\s+v?(\S{1,20})")
_TEST = re.compile(r"\*{4,8}\s*test (loop )?(\d{1,9}) of (\d{1,9}) (starts|done)")
_SHAPE = re.compile(r"n=(\d{1,15}) b=(\d{1,9}) r=(\d{1,9}) c=(\d{1,9})")
# AMD's row, and the older one of NVIDIA: time, half-precision rate, refinement, steps, rate.
_ROW = re.compile(
    r"(?:(HPL[_\-]AI)\s+)?(W[A-Za-z0-9]{2,20})\s+(\d{1,12})\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
    rf"((?:\s+{NUMBER}){{2,5}})\s*$"
)


@dataclass(kw_only=True, slots=True)
class _Test:
    line: int
    shape: dict[str, str] = field(default_factory=dict)
    rate: str = ""
    unit: str = "GFLOP/s"
    per_gpu: str = ""
    lu_rate: str = ""
    time: str = ""
    phases: dict[str, str] = field(default_factory=dict)
    threshold: str = ""
    residual: str = ""
    step: str = ""  # the residual of a step of the refinement
    backward: str = ""
    verdict: str = ""
    ended: bool = False

    def begun(self) -> bool:
        return bool(self.rate or self.phases or self.shape or self.step or self.residual)

    def result(self, line: Line) -> None:
        if not self.ended:
            self.line = min(self.line, line.number) if self.rate else line.number


@dataclass(kw_only=True)
class _Output(Output):
    test: _Test = field(init=False)
    loop: tuple[int, int] = (0, 0)
    numbered: tuple[int, int] = (0, 0)
    done: int = 0
    warmup: bool = False

    def __post_init__(self) -> None:
        self.test = _Test(line=self.line)

    def begins(self, text: str) -> bool:
        return _BANNER.match(text) is not None

    def read(self, line: Line, text: str) -> None:
        """Take in a line, which may begin the next test although the last one was not closed."""
        if self._begins_test(text):
            self.ready += self._close()
            self.test = _Test(line=line.number)
        super().read(line, text)

    def _begins_test(self, text: str) -> bool:
        test = self.test
        if (match := _TEST.match(text)) is not None:
            return match[4] == "starts" and bool(test.rate or test.phases or test.residual)
        if text.startswith(("Time spent in conversion to single", "HPL-AI Mixed")):
            return test.begun()
        if (row := _ROW.match(text)) is not None:
            return bool(test.time) or (bool(row[1]) and test.begun())
        if text.startswith(("# refinement:", "# iterative refinement:", "||Ax-b||")):
            return bool(test.rate and test.verdict)
        return bool((text.startswith("N = ") and test.rate) or (_SHAPE.match(text) and (test.rate or test.shape)))

    @rule(_BANNER, wanted="")
    def banner(self, match: re.Match[str], line: Line) -> None:
        self.variant, self.version = "nvidia", match[1]

    @rule(r"--([A-Za-z][\w\-]{0,60})\s*=\s*(\S{1,40})")
    def setting(self, match: re.Match[str], line: Line) -> None:
        self.facts[match[1]] = match[2]

    @rule(_TEST)
    def number_of_test(self, match: re.Match[str], line: Line) -> None:
        at = (int(match[2]), int(match[3]))
        if match[1]:
            self.loop = at
            self.test.ended = self.test.ended or match[4] == "done"
        else:
            self.numbered = at

    @rule(r"N = (\d{1,15}), NB = (\d{1,9}), NPROW = (\d{1,9}), NPCOL = (\d{1,9})(?:, SLOPPY-TYPE = (\S{1,20}))?")
    def sizes(self, match: re.Match[str], line: Line) -> None:
        self.test.shape = {k: v for k, v in zip((*_SIZES, "SLOPPY-TYPE"), match.groups(), strict=True) if v}
        self.variant = self.variant or "nvidia"
        self.test.result(line)

    @rule(rf"GFLOPS = ({UNCUT})(?:, per GPU =\s*({UNCUT}))?")
    def rate(self, match: re.Match[str], line: Line) -> None:
        self.test.rate, self.test.per_gpu = match[1], match[2] or ""
        self.test.result(line)

    lu_rate = sets(rf"LU GFLOPS = ({UNCUT})", "test.lu_rate")

    @rule(rf"(LU|Iterative Solver) seconds: AVG = ({UNCUT}), MAX = ({UNCUT})")
    def phase(self, match: re.Match[str], line: Line) -> None:
        self.test.phases[match[1]] = match[3]

    threshold = sets(
        rf"Threshold[ .]{{1,80}}=\s*({UNCUT})"
        rf"|(?:- )?Computational tests pass if scaled residuals are less than\s+({UNCUT})",
        "test.threshold",
    )

    @rule(rf"\|\|Ax-b\|\|[^=]{{0,120}}=\s*({UNCUT})\s*\.{{3,}}\s*(PASSED|FAILED)")
    def residual(self, match: re.Match[str], line: Line) -> None:
        self.test.residual, self.test.verdict = match[1], match[2]
        self.test.ended = self.test.ended or self.variant != "nvidia"

    @rule(
        r"(?:Time spent in (conversion to single|factorization|solve|conversion to double|GMRES)"
        rf"|(Total time))\s*:\s*({UNCUT})\s*second"
    )
    def spent(self, match: re.Match[str], line: Line) -> None:
        self.variant = self.variant or "reference"
        if match[2]:
            self.test.time = match[3]
        else:
            self.test.phases[match[1]] = match[3]

    @rule(rf"Effective operation per sec\s*:\s*({UNCUT})\s*([GT])FLOPs")
    def effective(self, match: re.Match[str], line: Line) -> None:
        self.variant = self.variant or "reference"
        self.test.rate, self.test.unit = match[1], f"{match[2]}FLOP/s"
        self.test.result(line)

    backward = sets(rf"Final backward error\b[^:]{{0,80}}:\s*({UNCUT})", "test.backward")

    @rule(rf"({UNCUT}) sec\. ({UNCUT}) GFlop/s resid =\s*({UNCUT}) hpl-harness = ({UNCUT})")
    def of_riken(self, match: re.Match[str], line: Line) -> None:
        self.variant, test = "riken", self.test
        test.time, test.rate, test.backward, test.residual = match.groups()
        test.threshold, test.verdict = "16.0", "PASSED"
        test.result(line)
        test.ended = True

    @rule(_SHAPE)
    def shape(self, match: re.Match[str], line: Line) -> None:
        self.test.shape |= zip(_SIZES, match.groups(), strict=True)

    @rule(_ROW)
    def row(self, match: re.Match[str], line: Line) -> None:
        test, values = self.test, match[7].split()
        test.shape = dict(zip(("tv", *_SIZES), match.groups()[1:6], strict=True))
        if match[1]:
            self.variant, test.lu_rate = "nvidia", values[1]
        else:
            self.variant, test.time = self.variant or "amd", values[0]
        test.rate = values[-1]
        test.result(line)

    @rule(rf"Final Score:\s*({UNCUT}) GFLOPS")
    def score(self, match: re.Match[str], line: Line) -> None:
        self.variant = "amd"
        self.test.rate = self.test.rate or match[1]  # the row prints the same with fewer digits

    @rule(r"Residual Check:\s*(PASSED|FAILED)")
    def check(self, match: re.Match[str], line: Line) -> None:
        self.test.verdict, self.test.ended = match[1], True
        self.test.residual = self.test.residual or self.test.step

    refined = sets(rf"# refinement: step=.{{1,60}}residual=({UNCUT})", "test.step")

    @rule(r"Backward error (.*)", wanted="Backward error ")
    def verdict(self, match: re.Match[str], line: Line) -> None:
        self.test.verdict, self.test.ended = "FAILED" if "DID NOT PASS" in match[1] else "PASSED", True

    error = keeps(r"!!!! (?:ERROR|FATAL)|HPLMXP? ERROR|HPL-MxP ERROR", "stops", flags=re.IGNORECASE)

    warm_up = sets(r"(?:tile |2dbc ).*? warmup ", "warmup", True, wanted=r"(?:tile|2dbc) (?:precomp|lazy|back_buffer) ")

    def _close(self) -> list[Run]:
        self.done += self.test.begun()
        return [_result(self, self.test)] if self.test.begun() else []

    def runs(self) -> Iterator[Run]:
        """Yield the last test, and a run for what was announced: a start without a test, or loops that never came."""
        yield from self._close()
        at, of = (self.loop if self.loop[1] > self.loop[0] else self.numbered) if self.done else (0, 1)
        if self.done and of <= at and not self.stops:
            return
        draft = self.draft()
        if self.variant or self.facts or draft.stop:
            draft.mark_incomplete(f"ends after {self.done} of {max(of, 1)} results")
            yield draft.run()


@PARSERS.register("hpl-mxp")
class HplMxp(OutputParser):
    """Reads the rate to report, the rate of the factorisation and the residual."""

    benchmark = "hpl-mxp"
    description = "HPL-MxP (HPL-AI): the reference program, NVIDIA, RIKEN, AMD"
    validity_notes = Proof(
        identity="NVIDIA's banner and settings, `HPL-MxP Mixed-Precision Benchmark`, the reference program's times, RIKEN's and AMD's result lines",
        success="a rate and a passed check of the residual; rate, N and the times of the phases agree",
        failure="a `FAILED` check, a residual at or above its threshold, a rate that N and time refute",
    )
    programs = (r"hpl[\-_]?(?:mxp|ai)(?:\.sh)?", r"xhpl[\-_](?:mxp|ai)\w{0,20}", r"rochplmxp", r"run_rochplmxp")
    output = _Output
    start_patterns = (
        r"HPL-(?:MxP|AI)-NVIDIA[ \t]+v?\d",
        r"\*{4,8}[ \t]*HPL[ \-](?:MxP|AI) (?:Settings|Result)",
        r"HPL-(?:AI|MxP) Mixed-Precision Benchmark",
        r"Time spent in conversion to single[ \t]*:",
        r"Effective operation per sec[ \t]*:",
        r"n=\d{1,15} b=\d{1,9} r=\d{1,9} c=\d{1,9}[ \t]*(?=[\r\n]|\Z)",
        r"# (?:iterative )?refinement: step=",
        r"\d{1,12}\.\d{1,12} sec\. \d{1,20}\.\d{1,12} GFlop/s resid =",
        r"HPL[_\-]AI[ \t]+W[RC]\w{1,18}[ \t]+\d",
        r"HPLMXP_pd?gesv\(\) (?:start|end) time",
    )
    also = start_patterns


def _result(output: _Output, test: _Test) -> Run:
    draft = output.draft(test.line)
    draft.add_metric("gflops", test.rate, test.unit, registered="mixed_flops")
    draft.add_metric("gflops_per_gpu", test.per_gpu, "GFLOP/s")
    draft.add_metric("lu_gflops", test.lu_rate, "GFLOP/s")
    draft.add_metric("residual", test.residual, "1", Direction.LOWER, registered="residual")
    draft.add_metric("backward_error", test.backward, "1", Direction.LOWER)
    draft.add_metric("time", test.time, "s", registered="benchmark_time")
    for phase, printed in test.phases.items():
        draft.add_metric("phase_time", printed, "s", phase=phase)
    _judge(draft, output, test)
    for key, value in test.shape.items():
        draft.parameters[key] = int(value) if value.isdecimal() and key != "SLOPPY-TYPE" else value
    if (sloppy := test.shape.get("SLOPPY-TYPE")) is not None:
        draft.parameters["precision"] = {"1": "FP8", "2": "FP16"}.get(sloppy, sloppy)
    if output.loop[1] > 1:
        draft.parameters["test_loop"] = output.loop[0]
    return draft.run()


def _judge(draft: Draft, output: _Output, test: _Test) -> None:
    value, limit = number(test.residual), number(test.threshold)
    if test.verdict == "FAILED" or (test.residual and value is None):
        draft.mark_invalid(f"residual check: {test.residual or test.backward} FAILED")
    if test.rate and number(test.rate) is None:
        draft.mark_invalid(f"the rate is {test.rate}")
    draft.mark_impossible()
    if value is not None and limit is not None and test.verdict and value >= limit > 0:
        draft.mark_invalid(f"residual {test.residual} is not below {test.threshold}")
    if draft.ok and test.rate:
        draft.mark_invalid(_contradicted(output, test))
    if not (test.rate and test.verdict and (test.ended or test.lu_rate)):
        missing = "rate" if not test.rate else "residual check" if not test.verdict else "end"
        draft.mark_incomplete(f"no {missing} of the result")


def _contradicted(output: _Output, test: _Test) -> str | None:
    rate, n = number(test.rate) or 0.0, int(test.shape.get("N", "0"))
    if n and not output.warmup:
        if test.time and (why := contradiction(hpl_gflop(n), test.rate, test.time, test.unit)):
            return f"{why} (N = {n})"
        phases = [number(test.phases.get(k, "")) for k in ("LU", "Iterative Solver")]
        spent = math.fsum(p for p in phases if p is not None)
        implied = hpl_gflop(n) / rate if rate else math.inf
        # Times are printed to 0.01 s, and the two phases have a small gap between them.
        if None not in phases and differ(implied, spent, 0.02, 0.1):
            return (
                f"the log prints {test.rate} GFLOP/s, but N = {n} in {spent:.6g} s are"
                f" {hpl_gflop(n) / spent if spent else math.inf:.6g} GFLOP/s"
            )
    gpus = int(test.shape.get("P", "0")) * int(test.shape.get("Q", "0"))
    per_gpu = number(test.per_gpu)
    if per_gpu is not None and gpus and differ(per_gpu * gpus, rate, 1e-3):
        return f"{test.per_gpu} GFLOP/s per GPU on {gpus} GPUs are not {test.rate} GFLOP/s"
    return None
