"""The lines of miniBUDE logs: version 1, version 2 (like YAML) and its CSV."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from transect.hpc.base import Parameter
from transect.hpc.parsers._checks import whole
from transect.hpc.rules import Output, keeps, notes, rule, sets
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

# Version 2's columns, behind those that a collector of several runs put before them.
CSV_HEAD = r"(?:[A-Za-z][\w \-]{0,30},[ \t]{0,4}){0,6}ppwi[ \t]{0,4},[ \t]{0,4}wgsize[ \t]{0,4},[ \t]{0,4}"
CSV_ROW = r"(?:[A-Za-z][^,\n]{0,60},[^,\n]{0,60},)?(?:[^,\n]{0,60},){0,4}[ \t]{0,4}\d{1,9}[ \t]{0,4},[ \t]{0,4}\d{1,9}[ \t]{0,4},"
_CSV_HEAD = re.compile(CSV_HEAD)

_TITLE = re.compile(r"miniBUDE([ \w]{0,20}):\s*(\S.*)?$")
_V1_NAMES = {
    "Total kernel time": "total_time",
    "Kernel time": "total_time",
    "Total time": "total_time",
    "Average kernel time": "average_time",
    "Average time": "average_time",
    "Interactions/s": "giga_interactions",
    "GFLOP/s": "gflops",
    "GFInst/s": "gfinst",
}
_V1_FACT = re.compile(
    r"(Poses|Iterations|Ligands|Proteins|Deck|Types|Threads|WG|Work-?group size|PPWI"
    r"|Poses per (?:work-?item|WI))\s*:\s*(\S.*)$",
    re.IGNORECASE,
)
_V1_KEYS = {"wg": "wgsize", "work-group size": "wgsize", "workgroup size": "wgsize"}
_V2_KEYS = {
    "sum_ms": "total_time",
    "avg_ms": "average_time",
    "min_ms": "minimum_time",
    "max_ms": "maximum_time",
    "stddev_ms": "deviation_time",
    "context_ms": "context_time",
    "giga_interactions/s": "giga_interactions",
    "interactions/s": "interactions",
    "gflop/s": "gflops",
    "gflops/s": "gflops",
    "gfinst/s": "gfinst",
}
_USAGE = re.compile(
    r"Unrecognized argument '(?:--(?:poses|numposes|ppwi|wgsize|deck|iter|iterations|rows|out"
    r"|posesperwi))'"
)


def usage_error(text: str) -> bool:
    """Tell whether a line refuses an option that no other program here has."""
    return _USAGE.match(text) is not None


@dataclass(kw_only=True, slots=True)
class Result:
    """One row of CSV, one item of the list, or one block of version 1."""

    line: int
    values: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Parameter] = field(default_factory=dict)
    raw: list[float] = field(default_factory=list)
    valid: bool | None = None
    difference: str = ""


@dataclass(kw_only=True)
class Section(Output):
    """What one start of the program printed."""

    heading: str = ""
    columns: tuple[str, ...] = ()
    results: list[Result] = field(default_factory=list)
    checked: dict[tuple[str, str], bool] = field(default_factory=dict)
    skipped: int = 0
    selected: int = 0
    failures: list[str] = field(default_factory=list)
    over: bool = False

    def begins(self, text: str) -> bool:
        if usage_error(text) or _TITLE.match(text) or _CSV_HEAD.match(text):
            # The notes about checks come before the CSV header.
            return bool(self.results or self.stops or "config" in self.heading)
        if text.startswith("# (ppwi="):
            return self.over or (bool(self.results) and self.variant != "v1")
        if text.startswith("Running ") or _V1_FACT.match(text) is not None:
            return bool(self.results)
        return False

    @rule(
        r"- (Total kernel time|Kernel time|Total time|Average kernel time|Average time"
        rf"|Interactions/s|GFLOP/s|GFInst/s):\s*({NUMBER})\s*(ms|billion)?\s*$"
    )
    def of_version_1(self, match: re.Match[str], line: Line) -> None:
        name = _V1_NAMES[match[1]]
        self.variant = self.variant or "v1"
        last = self.results[-1] if self.results else None
        if last is None or name in last.values or name == "total_time":
            last = Result(line=line.number)
            self.results.append(last)
        last.values[name] = match[2]

    @rule(rf"- outcome:\s*\{{ valid: (true|false), max_diff_%: ({NUMBER}) \}}")
    def outcome(self, match: re.Match[str], line: Line) -> None:
        self.variant = "v2"
        self.results.append(Result(line=line.number, valid=match[1] == "true", difference=match[2]))

    @rule(r"param:\s*\{ ppwi: (\d{1,9}), wgsize: (\d{1,9}) \}", wanted="param:")
    def parameters_of_result(self, match: re.Match[str], line: Line) -> bool:
        if self.results:
            self.results[-1].facts.update(ppwi=int(match[1]), wgsize=int(match[2]))
        return bool(self.results)

    @rule(r"raw_iterations:\s*\[([^\]]{0,16000})\]", wanted="raw_iterations:")
    def raw(self, match: re.Match[str], line: Line) -> bool:
        if not self.results:
            return False
        values = [number(part) for part in match[1].split(",")]
        self.results[-1].raw = [value for value in values if value is not None]
        return True

    @rule(rf"({'|'.join(map(re.escape, _V2_KEYS))}):\s*(\S{{1,400}})\s*$")
    def of_version_2(self, match: re.Match[str], line: Line) -> bool:
        if not self.results or self.variant != "v2":
            return False
        self.results[-1].values.setdefault(_V2_KEYS[match[1]], match[2])
        return True

    @rule(_CSV_HEAD, wanted="")
    def csv_head(self, match: re.Match[str], line: Line) -> None:
        self.columns = tuple(name.strip() for name in match.string.split(",")[:20])
        self.variant = "v2 csv"

    @rule(CSV_ROW)
    def csv_row(self, match: re.Match[str], line: Line) -> bool:
        if not self.columns:
            return False
        named = dict(zip(self.columns, match.string.split(",")[:20], strict=False))
        result = Result(line=line.number)
        for column, value in named.items():
            if column in _V2_KEYS and (value.strip() or not line.cut):
                result.values[_V2_KEYS[column]] = value.strip()
            elif (count := whole(value.strip())) is not None and column in ("ppwi", "wgsize"):
                result.facts[column] = count
            elif column not in _V2_KEYS and value.strip():
                result.facts[column.lower()] = excerpt(value.strip(), 60)
        self.results.append(result)
        return True

    @rule(r"# \(ppwi=(\d{1,9}),wgsize=(\d{1,9}),valid=([01])\)", wanted="")
    def check(self, match: re.Match[str], line: Line) -> None:
        self.checked[match[1], match[2]] = match[3] == "1"

    best = sets(r"(?:# )?best:", "over", True)

    @rule(r"(?:deck|config|results):$", wanted=r"(?:deck|config|results|device):")
    def part(self, match: re.Match[str], line: Line) -> None:
        self.heading += match[0]

    @rule(r"(path|poses|proteins|ligands|forcefields|iterations|wgsize|available|selected):\s*(\S.*)$")
    def deck(self, match: re.Match[str], line: Line) -> bool:
        if not self.heading:
            return False
        self._deck(match[1], match[2].strip())
        return True

    def _deck(self, key: str, value: str) -> None:
        in_config = "config:" in self.heading
        if key == "selected" or (key == "wgsize" and value.startswith("[")):
            count = value.count(",") + 1
            self.selected = max(self.selected, 1) * count
        elif key == "poses":
            count_poses = whole(value)
            if count_poses is not None:
                self.facts["poses" if in_config else "deck_poses"] = count_poses
        elif key == "path":
            self.facts["deck"] = excerpt(value.strip('"'))
        elif key != "available" and (number_of := whole(value)) is not None:
            self.facts[key] = number_of

    @rule(
        _V1_FACT,
        wanted=r"(?:(?:Poses|Iterations|Ligands|Proteins|Deck|Types|Threads|WG|PPWI)[ \t]*:|Poses per|Work-?group size)",
    )
    def fact(self, match: re.Match[str], line: Line) -> None:
        key = match[1].lower()
        key = "ppwi" if key.startswith("poses per") else _V1_KEYS.get(key, key)
        count = whole(match[2].strip())
        self.facts[key] = excerpt(match[2]) if count is None else count
        self.variant = self.variant or "v1"

    @rule(_TITLE, wanted="")
    def title(self, match: re.Match[str], line: Line) -> None:
        if match[2]:
            first = match[2].split()[0]  # "unknown (built with ...)" without CMake
            self.version = "" if first == "unknown" else excerpt(first, 40)
            self.variant = "v2"
        else:
            self.facts["label"] = f"miniBUDE{match[1]}"

    @rule(r"Running (.*)", wanted=r"Running [A-Z]")
    def model(self, match: re.Match[str], line: Line) -> None:
        self.facts["model"] = excerpt(match[1], 60)
        self.variant = self.variant or "v1"

    device = notes(r"device:\s*\{ index: (\d{1,9}),\s*name: \"([^\"]{0,200})\"", "device", str, group=2, wanted="")

    launched = notes(
        r"Using kernel parameters: <<<\d{1,9},(\d{1,9})>>>", "wgsize", int, wanted="Using kernel parameters:"
    )

    @rule(rf"Largest difference was\s*({NUMBER})\s*%", wanted="Largest difference was")
    def largest(self, match: re.Match[str], line: Line) -> None:
        if self.results:
            self.results[-1].difference = match[1]

    @rule(r"# WARNING: pose count", wanted=r"# (?:WARNING|Verification)")
    def skips(self, match: re.Match[str], line: Line) -> None:
        self.skipped += 1

    wrong = keeps(r"# Verification failed.*", "failures", wanted="")

    @rule(_USAGE, wanted="")
    @rule(r"(?:terminate called|Bad file:|Failed to open '|what\(\):|PPWI \d+ is not)")
    def stopped(self, match: re.Match[str], line: Line) -> None:
        self.stop(excerpt(match.string))
