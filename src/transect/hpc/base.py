"""What a log yields (`Run`) and what reads it (`Parser`), shared by all parsers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from transect.domain.metrics import Direction
from transect.domain.registry import Plugin, Registry
from transect.hpc.block import Block
from transect.hpc.text import Line

# The slug of a file in which no parser found its benchmark.
UNKNOWN = "unknown"

Parameter = str | int | float | bool | list[str] | list[int]


class RunStatus(StrEnum):
    """How a run in a log ended. Only the metrics of an `ok` run may become a bound."""

    OK = "ok"
    FAILED = "failed"  # the log says that the run was stopped
    INVALID = "invalid"  # a result, but wrong, impossible or contradicted by its own log
    TRUNCATED = "truncated"  # the log ends, without saying why, before the result is complete
    NO_RESULT = "no-result"  # nothing to read a result from


# A log holds a million numbers: these two are plain data, a third of the time of a validating model. What
# reads them back from JSON validates (`transect.hpc.table`).
@dataclass(frozen=True, slots=True)
class Normalised:
    """A value under the name and in the unit of `transect.domain.metrics`."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class LogMetric:
    """One number as the log prints it, in the log's own unit. Raises ValueError when it is not finite.

    `printed` are the log's digits (`8.2370e+02`), `size` a message or problem size as the log counts, `phase`
    which of several (a STREAM kernel), `precision` that of the arithmetic (`fp64`).
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str
    value: float
    printed: str
    unit: str
    direction: Direction
    size: int | None = None
    phase: str | None = None
    precision: str | None = None
    normalised: Normalised | None = None

    def __post_init__(self) -> None:
        """Refuse what JSON cannot say."""
        if not math.isfinite(self.value):
            raise ValueError(f"{self.name} = {self.value}: a metric is finite")


class Series(BaseModel):
    """Raw samples of one series, in the order of the log."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    unit: str
    values: list[float]


class Run(BaseModel):
    """One run of one benchmark, found at one place of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    file: str
    line: int = Field(ge=0, description="where the run or its result begins; 0 when nothing was read")
    benchmark: str
    variant: str = ""
    version: str = ""
    status: RunStatus
    reason: str = Field(default="", description="empty only when the status is ok")
    parameters: dict[str, Parameter] = {}
    metrics: list[LogMetric] = []
    samples: dict[str, Series] = {}
    warnings: list[str] = []
    suspicions: list[str] = Field(
        default=[], description="what makes an ok run doubtful without refuting it; `--strict` refuses it"
    )

    def metric(self, name: str, phase: str | None = None) -> LogMetric | None:
        """Return the first metric of that name (and phase), or None."""
        for metric in self.metrics:
            if metric.name == name and (phase is None or metric.phase == phase):
                return metric
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What a parser takes as proof, in words, for docs/benchmarks.md.

    `identity` that output is its benchmark's, `success` that a result stands, `failure` that it does not
    (`invalid`, unless the words say otherwise). What is merely missing is `truncated`, or `failed` where the
    log says what stopped the program.
    """

    identity: str
    success: str
    failure: str


class Parser(Plugin, ABC):
    """Reads the output of one benchmark. Registered with `@PARSERS.register("slug")`.

    Required are `benchmark`, `description`, `start_patterns`, `line_patterns` and `parse`. The patterns are regular
    expressions without capturing groups. They are matched at the beginning of a line, after its rank label (`3: `) and
    leading blanks are taken away, by one combined search over megabytes: only matching lines ever reach Python code.
    `transect.hpc.rules.OutputParser` makes `line_patterns` and `parse` of rules that stand once each.
    """

    # The name by which it is registered.
    benchmark: ClassVar[str]
    # What it reads, in a few words.
    description: ClassVar[str]
    # Lines with which output of this benchmark can begin. A table header counts: a log may have
    # lost its head.
    start_patterns: ClassVar[tuple[str, ...]]
    # Lines to be handed to `parse` after the first, those of `start_patterns` only where they stand here too (progress
    # lines may be millions); None hands over every line.
    line_patterns: ClassVar[tuple[str, ...] | None]

    # What it takes as proof, in words, for docs/benchmarks.md. A plug-in need not say it.
    validity_notes: ClassVar[Proof | None] = None
    # Names of its executables, as patterns: a launcher's line that names one tells which benchmark a job
    # was that died before it printed anything.
    programs: ClassVar[tuple[str, ...]] = ()
    # Whether the lines of several hosts are one output; else each host's is read on its own.
    merge_hosts: ClassVar[bool] = False
    # Benchmarks that print inside this one's output: their start lines do not end its block.
    nested: ClassVar[frozenset[str]] = frozenset()

    def matches(self, line: Line) -> bool:
        """Tell whether a line that matched `start_patterns` really begins output of this benchmark."""
        return True

    @abstractmethod
    def parse(self, block: Block) -> Iterator[Run]:
        """Yield the runs of a block: it ends where another benchmark begins, or the file.

        Returning before the block ends hands the rest of it back to the search for start lines.
        A block that yields no run is reported as `no-result`.
        """


PARSERS: Registry[Parser] = Registry("parser", "transect.hpc.parsers", Parser)
