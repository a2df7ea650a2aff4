"""The lines of HPL-MxP logs: what each tells about the program and the system it solves."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from transect.hpc.base import Parameter
from transect.hpc.parsers._checks import MAX_PARAMETERS
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, UNCUT

BANNER = re.compile(r"HPL-(?:MxP|AI)-NVIDIA\s+v?(\S{1,20})")
_SETTING = re.compile(r"--([A-Za-z][\w\-]{0,60})\s*=\s*(\S{1,40})")
_TEST = re.compile(r"\*{4,8}\s*test (loop )?(\d{1,9}) of (\d{1,9}) (starts|done)")
_RESULT = re.compile(
    r"N = (\d{1,15}), NB = (\d{1,9}), NPROW = (\d{1,9}), NPCOL = (\d{1,9})"
    r"(?:, SLOPPY-TYPE = (\S{1,20}))?"
)
_RATE = re.compile(rf"(LU )?GFLOPS = ({UNCUT})(?:, per GPU =\s*({UNCUT}))?")
_SECONDS = re.compile(rf"(LU|Iterative Solver) seconds: AVG = ({UNCUT}), MAX = ({UNCUT})")
_THRESHOLD = re.compile(
    rf"Threshold[ .]{{1,80}}=\s*({UNCUT})"
    rf"|(?:- )?Computational tests pass if scaled residuals are less than\s+({UNCUT})"
)
_RESIDUAL = re.compile(rf"\|\|Ax-b\|\|[^=]{{0,120}}=\s*({UNCUT})\s*\.{{3,}}\s*(PASSED|FAILED)")
_SPENT = re.compile(
    r"(?:Time spent in (conversion to single|factorization|solve|conversion to double|GMRES)"
    rf"|(Total time))\s*:\s*({UNCUT})\s*second"
)
_EFFECTIVE = re.compile(rf"Effective operation per sec\s*:\s*({UNCUT})\s*([GT])FLOPs")
_BACKWARD = re.compile(rf"Final backward error\b[^:]{{0,80}}:\s*({UNCUT})")
_SHAPE = re.compile(r"n=(\d{1,15}) b=(\d{1,9}) r=(\d{1,9}) c=(\d{1,9})")
_RIKEN = re.compile(rf"({UNCUT}) sec\. ({UNCUT}) GFlop/s resid =\s*({UNCUT}) hpl-harness = ({UNCUT})")
_SCORE = re.compile(rf"Final Score:\s*({UNCUT}) GFLOPS")
_CHECK = re.compile(r"Residual Check:\s*(PASSED|FAILED)")
_REFINED = re.compile(rf"# refinement: step=.{{1,60}}residual=({UNCUT})")
# AMD's row, and the older one of NVIDIA: time, half-precision rate, refinement, steps, rate.
_ROW = re.compile(
    r"(?:(HPL[_\-]AI)\s+)?(W[A-Za-z0-9]{2,20})\s+(\d{1,12})\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
    rf"((?:\s+{NUMBER}){{2,5}})\s*$"
)
_STOPS = re.compile(r"!!!! (?:ERROR|FATAL)|HPLMXP? ERROR|HPL-MxP ERROR", re.IGNORECASE)


@dataclass(kw_only=True, slots=True)
class Test:
    """One solution of one system, as far as the log has told."""

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
    begun: bool = False
    ended: bool = False
    cut: bool = False

    def complete(self) -> bool:
        """Tell whether nothing more of this test is to come."""
        return bool(self.rate and self.verdict and (self.ended or self.lu_rate) and not self.cut)


@dataclass(kw_only=True, slots=True)
class Log:
    """What holds for all tests of one start of the program."""

    line: int
    variant: str = ""
    version: str = ""
    settings: dict[str, Parameter] = field(default_factory=dict)
    loop: tuple[int, int] = (0, 0)
    test: tuple[int, int] = (0, 0)
    done: int = 0
    stops: list[str] = field(default_factory=list)
    warmup: bool = False


def begins(test: Test, text: str) -> bool:
    """Tell whether this line belongs to the next test although the last one was not closed."""
    if (match := _TEST.match(text)) is not None:
        return match[4] == "starts" and bool(test.rate or test.phases or test.residual)
    if text.startswith(("Time spent in conversion to single", "HPL-AI Mixed")):
        return test.begun
    if (row := _ROW.match(text)) is not None:
        return bool(test.time) or (bool(row[1]) and test.begun)
    if text.startswith("N = "):
        return bool(test.rate)
    if text.startswith(("# refinement:", "# iterative refinement:", "||Ax-b||")):
        return bool(test.rate and test.verdict)
    return bool(_SHAPE.match(text) and (test.rate or test.shape))


def read(log: Log, test: Test, line: Line, text: str) -> None:
    for pattern, handle in _HANDLERS:
        if (match := pattern.match(text)) is not None:
            if line.cut:  # half of a number is a number too
                test.cut = test.cut or pattern in (_RATE, _EFFECTIVE, _RIKEN, _ROW, _SCORE)
                return
            handle(log, test, match)
            if pattern in (_RATE, _EFFECTIVE, _RIKEN, _ROW, _RESULT) and not test.ended:
                test.line = min(test.line, line.number) if test.rate else line.number
            return
    if text.startswith("Backward error "):
        test.verdict = "PASSED" if "DID NOT PASS" not in text else "FAILED"
        test.ended = True
    elif _STOPS.match(text) and len(log.stops) < 5:
        log.stops.append(excerpt(text))
    elif " warmup " in text and text.startswith(("tile ", "2dbc ")):
        log.warmup = True


def _setting(log: Log, test: Test, match: re.Match[str]) -> None:
    if len(log.settings) < MAX_PARAMETERS:
        log.settings[match[1]] = match[2]


def _numbered(log: Log, test: Test, match: re.Match[str]) -> None:
    at = (int(match[2]), int(match[3]))
    if match[1]:
        log.loop = at
        test.ended = test.ended or match[4] == "done"
    else:
        log.test = at


def _result_line(log: Log, test: Test, match: re.Match[str]) -> None:
    names = ("N", "NB", "P", "Q", "SLOPPY-TYPE")
    test.shape = {k: v for k, v in zip(names, match.groups(), strict=True) if v}
    log.variant = log.variant or "nvidia"


def _rate(log: Log, test: Test, match: re.Match[str]) -> None:
    if match[1]:
        test.lu_rate = match[2]
    else:
        test.rate, test.per_gpu = match[2], match[3] or ""


def _spent(log: Log, test: Test, match: re.Match[str]) -> None:
    log.variant = log.variant or "reference"
    if match[2]:
        test.time = match[3]
    else:
        test.phases[match[1]] = match[3]


def _effective(log: Log, test: Test, match: re.Match[str]) -> None:
    log.variant = log.variant or "reference"
    test.rate, test.unit = match[1], f"{match[2]}FLOP/s"


def _residual(log: Log, test: Test, match: re.Match[str]) -> None:
    test.residual, test.verdict = match[1], match[2]
    test.ended = test.ended or log.variant != "nvidia"


def _riken(log: Log, test: Test, match: re.Match[str]) -> None:
    log.variant = "riken"
    test.time, test.rate, test.backward, test.residual = match.groups()
    test.threshold, test.verdict, test.ended = "16.0", "PASSED", True


def _row(log: Log, test: Test, match: re.Match[str]) -> None:
    test.shape = dict(zip(("tv", "N", "NB", "P", "Q"), match.groups()[1:6], strict=True))
    values = match[7].split()
    if match[1]:
        log.variant, test.lu_rate = "nvidia", values[1]
    else:
        log.variant, test.time = log.variant or "amd", values[0]
    test.rate = values[-1]


def _score(log: Log, test: Test, match: re.Match[str]) -> None:
    log.variant = "amd"
    test.rate = test.rate or match[1]  # the row prints the same with fewer digits


def _check(log: Log, test: Test, match: re.Match[str]) -> None:
    test.verdict, test.ended = match[1], True
    test.residual = test.residual or test.step


_HANDLERS: tuple[tuple[re.Pattern[str], Callable[[Log, Test, re.Match[str]], None]], ...] = (
    (_SETTING, _setting),
    (_TEST, _numbered),
    (_RESULT, _result_line),
    (_RATE, _rate),
    (_SECONDS, lambda _, t, f: t.phases.__setitem__(f[1], f[3])),
    (_THRESHOLD, lambda _, t, f: setattr(t, "threshold", f[1] or f[2])),
    (_RESIDUAL, _residual),
    (_SPENT, _spent),
    (_EFFECTIVE, _effective),
    (_BACKWARD, lambda _, t, f: setattr(t, "backward", f[1])),
    (_RIKEN, _riken),
    (_SHAPE, lambda _, t, f: t.shape.update(zip(("N", "NB", "P", "Q"), f.groups(), strict=True))),
    (_ROW, _row),
    (_SCORE, _score),
    (_CHECK, _check),
    (_REFINED, lambda _, t, f: setattr(t, "step", f[1])),
)
# What is searched for.
RULES = searched(*(pattern for pattern, _ in _HANDLERS), _STOPS)
