"""Logs of transect's message sweep (`transect.hpc.probes.messages`): OSU's columns, and raw times.

Unlike OSU's output the log says how it ended, and holds every sample: each row is recounted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Proof, Run, Series
from transect.hpc.draft import Draft
from transect.hpc.rules import Output, OutputParser, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

_START = r"# OSU-format message sweep \(transect, "
_TITLE = re.compile(rf"{_START}(\w{{1,20}})\) ([\w\- ]{{1,60}}) Test$")
_AVERAGE = "Avg Latency(us)"
# Column -> (name, unit, metric of the registry).
_COLUMNS: dict[str, tuple[str, str, str | None]] = {
    _AVERAGE: ("avg_latency", "us", "collective_time"),
    "Min Latency(us)": ("min_latency", "us", None),
    "Max Latency(us)": ("max_latency", "us", None),
    "Iterations": ("iterations", "1", None),
    "Bandwidth (MB/s)": ("bandwidth", "MB/s", "network_bandwidth"),
    "Overall(us)": ("overall", "us", None),
    "Compute(us)": ("compute", "us", None),
    "Pure Comm.(us)": ("pure_comm", "us", "collective_time"),
    "Overlap(%)": ("overlap", "%", "overlap"),
}
_SETTINGS = ("Iterations", "Compute(us)")
# Under which name a run has the iterations of the compared size.
COMPARED = "compared"
_HALF_DIGIT = 0.006  # values have two decimals, samples three
_AGREE = 1e-3


@dataclass(kw_only=True)
class _Output(Output):
    library: str = ""
    test: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    rows: dict[int, list[str]] = field(default_factory=dict)
    wrong: list[int] = field(default_factory=list)
    samples: dict[int, list[float]] = field(default_factory=dict)
    compared: tuple[int, str] | None = None
    turns: list[float] = field(default_factory=list)
    cut_turns: int = 0
    end: str = ""

    def begins(self, text: str) -> bool:
        return bool(self.library) and _TITLE.match(text) is not None

    def read(self, line: Line, text: str) -> None:
        """Take in a line that is whole, and one that begins a sweep."""
        if not line.cut or _TITLE.match(text):
            super().read(line, text)

    @rule(_TITLE, wanted="#")
    def title(self, match: re.Match[str], line: Line) -> None:
        self.line, self.library, self.test = line.number, match[1], match[2]

    @rule(r"# Size  +(\S.{1,200})$", wanted="")
    def header(self, match: re.Match[str], line: Line) -> None:
        names = re.split(r" {2,}", match[1])
        self.columns = names[:-1] if names[-1] == "Validation" else []

    @rule(rf"(\d{{1,12}})((?:[ \t]+{NUMBER})+)[ \t]+(Pass|Fail)$", wanted=r"\d{1,12}[ \t]")
    def row(self, match: re.Match[str], line: Line) -> None:
        size = int(match[1])
        self.rows[size] = match[2].split()
        if match[3] != "Pass":
            self.wrong.append(size)

    @rule(r"# Samples (\d{1,12}) \(us\): ([\d. ]{1,16000})$", wanted="")
    def raw(self, match: re.Match[str], line: Line) -> None:
        values = [number(text) for text in match[2].split()]
        self.samples[int(match[1])] = [value for value in values if value is not None]

    @rule(rf"# Compared at (\d{{1,12}}) B: ({NUMBER}) us$", wanted="")
    def size_compared(self, match: re.Match[str], line: Line) -> None:
        self.compared = int(match[1]), match[2]

    @rule(r"# Turn of (\d{1,9}) \(us\): ([\d. ]*)", wanted="")
    def turn(self, match: re.Match[str], line: Line) -> None:
        values = [value for text in match[2].split() if (value := number(text)) is not None]
        self.turns += values
        self.cut_turns += len(values) != int(match[1])

    @rule(r"# End of message sweep: (.{1,500})$", wanted="")
    def last(self, match: re.Match[str], line: Line) -> None:
        self.end, self.ended = match[1], True

    @rule(r"# (Datatype|Library|Ranks|Sizes left out):? (.{1,300}?)\.?$", wanted="")
    def fact(self, match: re.Match[str], line: Line) -> None:
        self.fields.setdefault(match[1].lower().replace(" ", "_"), match[2])

    def runs(self) -> Iterator[Run]:
        left_out = self.fields.get("sizes_left_out")
        draft = self.draft(
            variant=self.library,
            parameters={
                key: int(value) if re.fullmatch(r"\d{1,18}", value) else value
                for key, value in ({"test": self.test} | self.fields).items()
                if key != "sizes_left_out"
            },
            samples={str(k): Series(unit="us", values=v) for k, v in self.samples.items()}
            | ({COMPARED: Series(unit="us", values=self.turns)} if self.turns else {}),
            warnings=[f"sizes left out {excerpt(left_out)}"] if left_out else [],
        )
        for size, values in self.rows.items():
            for column, printed in zip(self.columns, values, strict=False):
                if column in _COLUMNS:
                    name, unit, registered = _COLUMNS[column]
                    if registered == "collective_time" and self.test == "Latency":
                        registered = "message_time"
                    way = Direction.NEUTRAL if column in _SETTINGS else None
                    draft.add_metric(name, printed, unit, way, registered=registered, size=size)
        if self.compared is not None:
            size, middle = self.compared
            draft.add_metric("operation", middle, "us", registered="operation_time", size=size)
        _judge(draft, self)
        yield draft.run()


def _close_to(printed: float, expected: float) -> bool:
    return math.isclose(printed, expected, rel_tol=_AGREE, abs_tol=_HALF_DIGIT)


def _recount(output: _Output, size: int) -> str | None:
    """Compare a row with its samples, by what the columns mean."""
    samples = output.samples.get(size, [])
    if not samples or min(samples) <= 0:
        return f"{size} B: no samples in the log, or one that took no time"
    values = [number(text) for text in output.rows[size]]
    if len(values) != len(output.columns) or None in values:
        return f"{size} B: {len(values)} numbers under {len(output.columns)} columns"
    row = dict(zip(output.columns, (v or 0.0 for v in values), strict=True))
    mean = sum(samples) / len(samples)
    if "Bandwidth (MB/s)" in row:
        right = _close_to(row["Bandwidth (MB/s)"], size / mean)
        # A sample has three decimals in us.
        right = right or abs(row["Bandwidth (MB/s)"] * mean / size - 1) < 1e-3 / min(samples)
        return None if right else f"{size} B: the samples give {size / mean:.2f} MB/s"
    if "Overlap(%)" in row:
        pure = row["Pure Comm.(us)"]
        hidden = 100 - (row["Overall(us)"] - row["Compute(us)"]) / pure * 100 if pure else 0.0
        slack = 0.01 + 100 * 2 * _HALF_DIGIT / pure if pure else 0.0
        if abs(min(100.0, max(0.0, hidden)) - row["Overlap(%)"]) > slack + abs(hidden) * _AGREE:
            return f"{size} B: its times give an overlap of {hidden:.2f} %"
        return None if pure <= mean * (1 + _AGREE) + _HALF_DIGIT else f"{size} B: mean above slowest"
    if len(row) == 1:
        right = _close_to(row[_AVERAGE], mean)
        return None if right else f"{size} B: the samples give {mean:.2f} us"
    if row["Iterations"] != len(samples):
        return f"{size} B: {row['Iterations']:.0f} iterations and {len(samples)} samples"
    # A sample is the slowest rank's, so their mean is above the mean of any rank.
    order = [row["Min Latency(us)"], row[_AVERAGE], row["Max Latency(us)"], mean]
    if any(a > b * (1 + _AGREE) + _HALF_DIGIT for a, b in pairwise(order)):
        return f"{size} B: least, mean, most and slowest are not in order"
    return None


def _judge(draft: Draft, output: _Output) -> None:
    if not output.end:
        draft.mark_incomplete("no last line of the sweep")
    if output.wrong or output.end != "ok":
        reason = output.end.removeprefix("invalid: ")
        sizes = ", ".join(map(str, output.wrong))
        draft.mark_invalid(excerpt(reason if output.end != "ok" else f"wrong at {sizes} B"))
    unknown = [name for name in output.columns if name not in _COLUMNS]
    if unknown:
        draft.mark_no_result(f"columns that are not known: {', '.join(unknown)}")
    if not output.columns or not output.rows:
        draft.mark_no_result("no table")
    for size in output.rows:
        if draft.ok:
            draft.mark_invalid(_recount(output, size))
    if draft.ok and output.compared is not None:
        size, middle = output.compared[0], median(output.turns or [0.0])
        if output.cut_turns:
            draft.mark_invalid(
                f"compared at {size} B: {output.cut_turns} turns have other numbers of values than they say"
            )
        if not _close_to(number(output.compared[1]) or 0.0, middle):
            draft.mark_invalid(f"compared at {size} B: the samples give {middle:.3f} us")
    draft.mark_impossible()


@PARSERS.register("message-sweep")
class MessageSweep(OutputParser):
    """Reads logs of `transect.hpc.probes.messages`."""

    benchmark = "message-sweep"
    description = "transect's own sweep over message sizes, in the columns of OSU"
    validity_notes = Proof(
        identity="`# OSU-format message sweep (transect, …)`",
        success="`# End of message sweep: ok`, `Pass` in every row; every row is recounted from its samples",
        failure="`Fail`, another end, a row that its samples do not give",
    )
    output = _Output
    start_patterns = (_START,)
    # The head of its table is also one of OSU's.
    nested = frozenset({"osu"})
