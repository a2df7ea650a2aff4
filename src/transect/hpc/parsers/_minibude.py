"""The lines of miniBUDE logs: version 1, version 2 (like YAML) and its CSV."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from transect.hpc.base import Parameter
from transect.hpc.parsers._compute import whole
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

CSV_HEAD = r"(?:[A-Za-z][\w \-]{0,30},[ \t]{0,4}){0,6}ppwi[ \t]{0,4},[ \t]{0,4}wgsize[ \t]{0,4},[ \t]{0,4}"
CSV_ROW = r"(?:[A-Za-z][^,\n]{0,60},[^,\n]{0,60},)?(?:[^,\n]{0,60},){0,4}[ \t]{0,4}\d{1,9}[ \t]{0,4},[ \t]{0,4}\d{1,9}[ \t]{0,4},"
_CSV_HEAD = re.compile(CSV_HEAD)
_CSV_ROW = re.compile(CSV_ROW)

_TITLE = re.compile(r"miniBUDE([ \w]{0,20}):\s*(\S.*)?$")
# Version 1 and its ports: label, digits.
_V1 = re.compile(
    r"- (Total kernel time|Kernel time|Total time|Average kernel time|Average time"
    rf"|Interactions/s|GFLOP/s|GFInst/s):\s*({NUMBER})\s*(ms|billion)?\s*$"
)
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
_V2_RESULT = re.compile(rf"({'|'.join(map(re.escape, _V2_KEYS))}):\s*(\S{{1,400}})\s*$")
_OUTCOME = re.compile(rf"- outcome:\s*\{{ valid: (true|false), max_diff_%: ({NUMBER}) \}}")
_PARAM = re.compile(r"param:\s*\{ ppwi: (\d{1,9}), wgsize: (\d{1,9}) \}")
_RAW = re.compile(r"raw_iterations:\s*\[([^\]]{0,16000})\]")
_DECK = re.compile(r"(path|poses|proteins|ligands|forcefields|iterations|wgsize|available|selected):\s*(\S.*)$")
_DEVICE = re.compile(r"device:\s*\{ index: (\d{1,9}),\s*name: \"([^\"]{0,200})\"")
_CHECKED = re.compile(r"# \(ppwi=(\d{1,9}),wgsize=(\d{1,9}),valid=([01])\)")
_LARGEST = re.compile(rf"Largest difference was\s*({NUMBER})\s*%")
_USING = re.compile(r"Using kernel parameters: <<<\d{1,9},(\d{1,9})>>>")
_USAGE = re.compile(
    r"Unrecognized argument '(?:--(?:poses|numposes|ppwi|wgsize|deck|iter|iterations|rows|out"
    r"|posesperwi))'"
)
_STOPS = re.compile(r"(?:terminate called|Bad file:|Failed to open '|what\(\):|PPWI \d+ is not)")
_MOST_RESULTS = 10_000
_MOST_SAMPLES = 4096


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
    cut: bool = False


@dataclass(kw_only=True, slots=True)
class Section:
    """What one start of the program printed."""

    line: int
    variant: str = ""
    version: str = ""
    heading: str = ""
    facts: dict[str, Parameter] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    results: list[Result] = field(default_factory=list)
    checked: dict[tuple[str, str], bool] = field(default_factory=dict)
    done: int = 0  # results, those that were handed over included
    skipped: int = 0
    selected: int = 0
    stops: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    ended: bool = False


def begins(section: Section, text: str) -> bool:
    """Tell whether a line belongs to the next start of the program."""
    if usage_error(text) or _TITLE.match(text) or _CSV_HEAD.match(text):
        # The notes about checks come before the CSV header.
        return bool(section.results or section.stops or "config" in section.heading)
    if text.startswith("# (ppwi="):
        return section.ended or (bool(section.results) and section.variant != "v1")
    if text.startswith("Running ") or _V1_FACT.match(text) is not None:
        return bool(section.results)
    return False


def read(section: Section, line: Line, text: str) -> None:
    """Take in one line."""
    if (match := _V1.match(text)) is not None:
        _v1(section, line, match)
    elif (match := _OUTCOME.match(text)) is not None:
        section.variant = "v2"
        _add(section, Result(line=line.number, valid=match[1] == "true", difference=match[2]))
    elif (match := _PARAM.match(text)) is not None and section.results:
        section.results[-1].facts.update(ppwi=int(match[1]), wgsize=int(match[2]))
    elif (match := _RAW.match(text)) is not None and section.results and not line.cut:
        values = [number(one) for one in match[1].split(",")[:_MOST_SAMPLES]]
        section.results[-1].raw = [one for one in values if one is not None]
    elif section.results and section.variant == "v2" and (match := _V2_RESULT.match(text)):
        if line.cut:
            section.results[-1].cut = True
        else:
            section.results[-1].values.setdefault(_V2_KEYS[match[1]], match[2])
    elif _CSV_HEAD.match(text):
        section.columns = tuple(name.strip() for name in text.split(",")[:20])
        section.variant = "v2 csv"
    elif section.columns and _CSV_ROW.match(text):
        _csv(section, line, text)
    elif (match := _CHECKED.match(text)) is not None:
        if len(section.checked) < _MOST_RESULTS:
            section.checked[match[1], match[2]] = match[3] == "1"
    elif text.startswith(("best:", "# best:")):
        section.ended = True
    else:
        _fact(section, line, text)


def _add(section: Section, result: Result) -> None:
    section.results.append(result)
    section.done += 1


def _v1(section: Section, line: Line, match: re.Match[str]) -> None:
    name = _V1_NAMES[match[1]]
    section.variant = section.variant or "v1"
    last = section.results[-1] if section.results else None
    if last is None or name in last.values or name == "total_time":
        last = Result(line=line.number)
        _add(section, last)
    # `ms` or `billion` after the digits proves that they are whole.
    if line.cut and not match[3]:
        last.cut = True
    else:
        last.values[name] = match[2]


def _csv(section: Section, line: Line, text: str) -> None:
    named = dict(zip(section.columns, text.split(",")[:20], strict=False))
    result = Result(line=line.number, cut=len(named) < len(section.columns))
    for column, value in named.items():
        last = column == section.columns[-1]
        if column in _V2_KEYS and not (line.cut and (last or result.cut)):
            result.values[_V2_KEYS[column]] = value.strip()
        elif (count := whole(value.strip())) is not None and column in ("ppwi", "wgsize"):
            result.facts[column] = count
        elif column not in _V2_KEYS and value.strip():
            result.facts[column.lower()] = excerpt(value.strip(), 60)
    _add(section, result)


def _fact(section: Section, line: Line, text: str) -> None:
    facts = section.facts
    if text in ("deck:", "config:", "results:"):
        section.heading += text
    elif section.heading and (match := _DECK.match(text)) is not None:
        _deck(section, match[1], match[2].strip())
    elif (match := _V1_FACT.match(text)) is not None:
        key = match[1].lower()
        key = "ppwi" if key.startswith("poses per") else _V1_KEYS.get(key, key)
        count = whole(match[2].strip())
        facts[key] = excerpt(match[2]) if count is None else count
        section.variant = section.variant or "v1"
    elif (match := _TITLE.match(text)) is not None:
        if match[2]:
            first = match[2].split()[0]  # "unknown (built with ...)" without CMake
            section.version = "" if first == "unknown" else excerpt(first, 40)
            section.variant = "v2"
        facts.update({"label": f"miniBUDE{match[1]}"} if not match[2] else {})
    elif text.startswith("Running "):
        facts["model"] = excerpt(text.removeprefix("Running "), 60)
        section.variant = section.variant or "v1"
    elif (match := _DEVICE.match(text)) is not None:
        facts["device"] = match[2]
    elif (match := _USING.match(text)) is not None:
        facts["wgsize"] = int(match[1])
    elif (match := _LARGEST.match(text)) is not None:
        if section.results and not line.cut:
            section.results[-1].difference = match[1]
    elif text.startswith("# WARNING: pose count"):
        section.skipped += 1
    elif text.startswith("# Verification failed"):
        if len(section.failures) < 5:
            section.failures.append(excerpt(text))
    elif (usage_error(text) or _STOPS.match(text)) and len(section.stops) < 5:
        section.stops.append(excerpt(text))


def _deck(section: Section, key: str, value: str) -> None:
    in_config = "config:" in section.heading
    if key == "selected" or (key == "wgsize" and value.startswith("[")):
        count = min(value.count(",") + 1, _MOST_RESULTS)
        section.selected = max(section.selected, 1) * count
    elif key == "poses":
        count_poses = whole(value)
        if count_poses is not None:
            section.facts["poses" if in_config else "deck_poses"] = count_poses
    elif key == "path":
        section.facts["deck"] = excerpt(value.strip('"'))
    elif key != "available" and (number_of := whole(value)) is not None:
        section.facts[key] = number_of
