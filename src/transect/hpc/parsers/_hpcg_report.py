"""The lines of HPCG logs: the report in its three notations, and the table of the GPU builds.

The report is written as `Section::Key=value` (3.0 and later), as indented `Key: value` (2.x, 3.0,
rocHPCG), or with a blank around ` Final Summary ::` (Intel 3.1). Indentation is not relied upon:
time stamps and rank labels destroy it. A heading tells which section the keys below it are in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from transect.hpc.parsers._checks import differ
from transect.hpc.text import Line, excerpt
from transect.hpc.values import UNCUT, number

TESTS = (
    "Spectral Convergence Tests",
    "Departure from Symmetry",
    "Iteration Count Information",
    "Reproducibility Information",
)
_SECTION = re.compile(
    "|".join(TESTS) + r"|Machine Summary|(?:Global Problem|Processor|Local Domain) Dimensions"
    r"|(?:Setup|Linear System|Multigrid|Memory Use) Information|Benchmark Time Summary|Floating Point Operations Summary"
    r"|G(?:B|FLOP)/s Summary|(?:User Optimization|Sparse Operations) Overheads|DDOT Timing Variations|Final Summary"
)
_LEAVES = (
    r"Distributed Processes|Threads per processes|Global n[xyz]|np[xyz]|n[xyz]|Setup Time"
    r"|Number of (?:Equations|Nonzero Terms)|Result|Scaled residual (?:mean|variance)"
    r"|(?:Reference|Optimized) CG iterations per set|Total number of[a-z ]{0,24} iterations"
    r"|Number of CG sets|Optimization phase|(?:Raw )?(?:DDOT|WAXPBY|SpMV|MG|SymGS|Total)"
    r"|ALL_reduce|Raw (?:Read|Write|Total) B/W|Total with [a-zA-Z ]{1,60}"
)
_GRID = r"\d{1,9}x\d{1,9}x\d{1,9}"
_RATE_ROW = r"(?:SpMV|SymGS|total|final)[ \t]*=[ \t]*"
_GPU_UNIT = r"GF(?:lop/s)?\b"
_VERSION = r"version=(?:HPCG|V\d)"
_MAKE_TITLE = r"n\d{1,6}-\d{1,9}p-\d{1,6}t(?:[ \t]+version:|[ \t]*(?=[\r\n]|\Z))"

STARTS = (
    r"HPCG-NVIDIA[ \t]+v?\d",
    r"HPCG-Benchmark(?:[ \t]+version|[ \t]*(?=[\r\n]|\Z))",
    _MAKE_TITLE,
    _VERSION,
    r"rocHPCG version",
    r"start of application \(\d{1,6} OMP threads\)",
    r"HPCG result is (?:VALID|INVALID)",
    r"HPCG result is[ \t]*[:=][ \t]*INVALID",
    r"(?:Machine Summary|Global Problem Dimensions|Benchmark Time Summary)[ \t]*(?:::|[:=])",
    r"[_*]{0,16}[ \t]{0,2}Final Summary[ \t]{0,2}[_*]{0,16}[ \t]*(?:::|[:=])",
    rf"{_GRID} process grid",
    rf"{_RATE_ROW}[\d.]{{1,20}} {_GPU_UNIT}",
)
WANTS = (
    *STARTS,
    r"version[ \t]*[:=]",
    r"[\w.\-]{1,80} version: (?:V?\d|HPCG)",
    rf"(?:{_SECTION.pattern})",
    rf"(?:{_LEAVES})[ \t]*:",
    r"HPCG 2\.4 [Rr]ating",
    r"Reference version of",
    r"Results are valid but",
    r"You have selected the QuickPath",
    rf"{_GRID} local domain",
    rf"{_RATE_ROW}",
    r"Total Time:",
    r"(?:Setup|Optimization|Convergence)[ \t]+Overhead:",
    r"(?:Number of CG sets|Iterations per set|scaled res (?:mean|variance)):",
    r"GPU Name:",
    r"\*\*\* WARNING \*\*\*",
    r"Build v",
)

_BUILD = re.compile(r"(HPCG-NVIDIA|rocHPCG version:?)\s+v?(\S{1,40})")
_VERSION_LINE = re.compile(r"(?:[\w.\-]{1,80}\s+)?version\s*[:=]\s*(?:HPCG-Benchmark[_\-])?(V?\d[\w.\-]{0,20})")
_TITLE = re.compile(rf"HPCG-Benchmark\b|{_MAKE_TITLE}|(?:[\w.\-]{{1,80}} )?version[:=]")
_VALID = re.compile(rf"HPCG result is VALID with a GFLOP/s rating of\s*([:=]?)\s*({UNCUT})")
_INVALID = re.compile(r"HPCG result is\s*[:=]?\s*INVALID")
_NOT_VALID = re.compile(r"\*{3} WARNING \*{3}.{0,80}\b(?:INVALID|NOT (?:A )?VALID)", re.IGNORECASE)
_OLD_RATING = re.compile(rf"HPCG 2\.4 [Rr]ating[^:=]{{0,60}}[:=]\s*({UNCUT})")
_SHORT = re.compile(rf"Results are valid but execution time \(sec\) is\s*[:=]\s*({UNCUT})")
_GRID_LINE = re.compile(rf"({_GRID}) (process grid|local domain)")
_GPU_RATE = re.compile(
    rf"(SpMV|SymGS|total|final)\s*=\s*({UNCUT})\s*({_GPU_UNIT})"
    rf"(?:\s*\([^)]{{0,60}}\)\s*({UNCUT})\s*GF)?"
)
_GPU_FACT = re.compile(
    r"(Total Time|Setup\s+Overhead|Optimization\s+Overhead|Convergence\s+Overhead"
    rf"|Number of CG sets|Iterations per set|scaled res mean|scaled res variance):\s*({UNCUT})"
)


@dataclass(kw_only=True, slots=True)
class Report:
    """What one start of the program printed."""

    line: int
    build: str = ""
    variant: str = ""
    version: str = ""
    section: str = ""
    facts: dict[tuple[str, str], str] = field(default_factory=dict)
    rating_line: str = ""  # the rating as a line of its own, before or after the report
    rating: str = ""
    invalid: bool = False
    old_rating: str = ""
    gpu: dict[str, tuple[str, str]] = field(default_factory=dict)  # rate, rate per process
    gpu_facts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    headed: bool = False
    cut: bool = False

    def fact(self, section: str, *keys: str) -> str:
        """Return the first of several keys of a section, or an empty string."""
        return next((v for k in keys if (v := self.facts.get((section, k)))), "")

    def ended(self) -> bool:
        return bool(self.rating or self.rating_line or self.invalid or "final" in self.gpu)

    def begun(self) -> bool:
        return bool(self.facts or self.gpu or self.gpu_facts or self.rating or self.invalid)


def _split(text: str) -> tuple[str, str, str]:
    """Return section (or an empty string), key and value of a line of the report."""
    if "::" in text:
        left, _, value = text.partition("=")
        parts = [part.strip() for part in left.split("::")]
        return parts[0].strip("_* "), parts[-1], value.strip()
    left, _, value = text.partition(":")
    return "", left.strip(), value.strip()


def _known(name: str) -> str:
    found = _SECTION.match(name)
    return found[0] if found else ""


def begins(report: Report, text: str) -> bool:
    if text.startswith(("HPCG-NVIDIA", "rocHPCG version", "start of application (")):
        return report.begun() or bool(report.rating_line)
    if (valid := _VALID.match(text)) is not None and not valid[1]:
        same = report.rating and not differ(number(report.rating) or 0.0, number(valid[2]) or 0.0, 1e-4)
        return bool(report.rating and not same) or bool(report.rating_line or report.invalid)
    if _TITLE.match(text) is not None:
        return bool(report.facts or report.rating or report.invalid)
    if text.startswith("Machine Summary") and "::" not in text:
        return any(section == "Machine Summary" for section, _ in report.facts)
    if (row := _GPU_RATE.match(text)) is not None:
        return row[1] in report.gpu
    return False


def read(report: Report, line: Line, text: str) -> None:
    if line.cut:  # half of a number is a number too
        report.cut = True
        return
    report.headed = report.headed or _TITLE.match(text) is not None
    if (match := _BUILD.match(text)) is not None:
        report.variant = "nvidia" if "NVIDIA" in match[1] else "amd"
        report.build = f"{match[1].split()[0]} {match[2]}"
    elif (match := _VALID.search(text, 0, 200)) is not None:
        if match[1] or "::" in text[: match.start()]:
            report.rating = report.rating or match[2]
        else:
            report.rating_line = report.rating_line or match[2]
    elif _INVALID.search(text, 0, 200) is not None:
        report.invalid = True
    elif (match := _OLD_RATING.search(text, 0, 200)) is not None:
        report.old_rating = match[1]
    elif (match := _GPU_RATE.match(text)) is not None:
        report.gpu[match[1]] = (match[2], match[4] or "")
        report.variant = report.variant or ("nvidia" if match[3] == "GF" else "amd")
    elif (match := _GPU_FACT.match(text)) is not None:
        report.gpu_facts[" ".join(match[1].split())] = match[2]
    elif (match := _GRID_LINE.match(text)) is not None:
        report.gpu_facts[match[2]] = match[1]
    elif not report.version and (match := _VERSION_LINE.match(text)) is not None:
        report.version = match[1].rstrip(".")
    else:
        _read_report(report, text)


def _read_report(report: Report, text: str) -> None:
    note = text.partition("::")[2].strip() or text
    if note.startswith(("*** WARNING ***", "Reference version of", "You have selected")):
        report.invalid = report.invalid or _NOT_VALID.search(text, 0, 200) is not None
        report.notes.append(excerpt(note))
        return
    heading = _known(text.strip("_*# \t").rstrip(":= \t_*"))
    section, key, value = _split(text)
    if heading and "::" not in text and not value:
        report.section = heading
        return
    section = _known(section) if section else report.section
    if section and value:
        report.facts.setdefault((section, key), value[:60])
