"""What the logs of transect's own probes have in common: facts, samples, results that are recounted, an end."""

from __future__ import annotations

import math
import re
import statistics
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from transect.hpc.base import Parameter, Run
from transect.hpc.draft import Draft
from transect.hpc.rules import Output, rule, sets
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

FORMAT = 1
HEAD = re.compile(r"transect probe ([a-z\-]{1,40}) (\d{1,6})$")
_AGREE = 1e-4  # samples have nine decimals, results seven digits


class Result(NamedTuple):
    """A line of a result, its numbers as printed."""

    best: str
    median: str
    unit: str
    runs: int


@dataclass(kw_only=True)
class ProbeOutput(Output):
    """The log of one start of a probe."""

    probe: str = ""
    format: int = FORMAT
    fields: dict[str, str] = field(default_factory=dict)
    samples: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)

    def begins(self, text: str) -> bool:
        return bool(self.probe) and HEAD.match(text) is not None

    def read(self, line: Line, text: str) -> None:
        """Take in a line that is whole, and one that begins or ends a log."""
        if not line.cut or text.startswith("end of") or HEAD.match(text):
            super().read(replace(line, cut=False), text)

    @rule(HEAD, wanted="transect probe")
    def head(self, match: re.Match[str], line: Line) -> None:
        self.line, self.probe, self.format = line.number, match[1], int(match[2])

    @rule(rf"sample ([a-z][\w\-]{{0,40}}) (\d{{1,9}}) ({NUMBER})$")
    def sample(self, match: re.Match[str], line: Line) -> None:
        if (value := number(match[3])) is not None:
            self.samples.setdefault(match[1], []).append(value)

    @rule(
        rf"result ([a-z][\w\-]{{0,40}}) best ({NUMBER}) (\S{{1,12}}) median ({NUMBER}) "
        r"\S{1,12} runs (\d{1,9})$"
    )
    def result(self, match: re.Match[str], line: Line) -> None:
        self.results[match[1]] = Result(match[2], match[4], match[3], int(match[5]))

    end = sets(r"end of transect probe", "ended", True)

    @rule(r"([a-z_]{2,20}): (.{1,500})$")
    def fact(self, match: re.Match[str], line: Line) -> None:
        if match[1] == "warning":
            self.warnings.append(excerpt(match[2]))
        else:
            self.fields.setdefault(match[1], match[2])

    def parameters(self) -> dict[str, Parameter]:
        """Return what it says of itself, numbers as such."""
        return {
            key: int(value) if re.fullmatch(r"\d{1,18}", value) else value
            for key, value in self.fields.items()
            if key not in ("note", "status")
        }

    def judge_end(self, draft: Draft) -> None:
        """Judge whether the log is whole and of a known format."""
        if not self.ended:
            draft.mark_incomplete("no last line of the probe")
        if self.format != FORMAT:
            draft.mark_invalid(f"format {self.format} of the probe's log is not known, only {FORMAT}")

    def recount(self, label: str, samples: list[float], work: float | None, *, of_time: bool) -> str | None:
        """Compare a result with its samples: `work` over a time, or (`of_time`) that share of it."""
        result = self.results[label]
        if len(samples) != result.runs:
            return f"{label}: {result.runs} runs are stated, {len(samples)} samples are in the log"
        if not samples or min(samples) <= 0:
            return f"{label}: a sample of {min(samples, default=0)} s"
        if work is None:
            return f"{label}: its work is not known"
        for which, printed, seconds in (
            ("best", result.best, min(samples)),
            ("median", result.median, statistics.median(samples)),
        ):
            stated, expected = number(printed), work * seconds if of_time else work / seconds
            # A sample is rounded to 1e-9 s, which matters for the shortest ones.
            if stated is None or not math.isclose(stated, expected, rel_tol=_AGREE + 1e-9 / seconds):
                given = f"the samples give {expected:.6e} {result.unit}"
                return f"{label}: {which} is {printed} {result.unit}, but {given}"
        return None

    @abstractmethod
    def runs(self) -> Iterator[Run]:
        """Yield one run."""
