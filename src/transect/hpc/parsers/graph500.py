"""Graph500: reference versions 2 and 3, breadth-first search and shortest paths.

The same keys stand behind `bfs  `, `bfs_` or nothing, and a `!` may stand before the value.
Rates are recomputed from edges and times.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, LogMetric, Parameter, Proof, Run
from transect.hpc.parsers._network import Column, NetworkOutput, NetworkParser, agree, between, cell_metric
from transect.hpc.rules import rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, impossible, number

_ROOT = re.compile(r"(?:Running|Time for|TEPS for|Validating|Validate time for) (BFS|SSSP)\s+(\d{1,5})")
_TIMES = ("graph_generation", "generation_time", "construction_time", "redistribution_time")
_ORDER = ("min", "firstquartile", "median", "thirdquartile", "max")
# A rate of which statistic belongs to the time of which.
_PAIRS = (("min", "max"), ("median", "median"), ("max", "min"), ("harmonic_mean", "mean"))


@dataclass(kw_only=True)
class _Summary(NetworkOutput):
    knows_width = False

    header: dict[str, str] = field(default_factory=dict)
    # (kernel or "", statistic, of what) -> digits
    values: dict[tuple[str, str, str], str] = field(default_factory=dict)
    roots: int = 0
    bad: str = ""

    def kernels(self) -> list[str]:
        return [k for k in ("", "bfs", "sssp") if any(v[0] == k and v[2] == "TEPS" for v in self.values)]

    def begins(self, text: str) -> bool:
        """Tell whether a summary begins, or the searches before it, that is not the present one."""
        done = bool(self.values or self.bad)
        if text.startswith("SCALE:"):
            return done or "SCALE" in self.header
        if text.startswith("graph_generation:"):
            return done
        root = _ROOT.match(text) if text.startswith("Running") else None
        return done and root is not None and int(root[2]) == 0

    @rule(
        r"(?:(bfs|sssp)[ \t_]+)?(min|firstquartile|median|thirdquartile|max|mean|stddev|harmonic_mean"
        rf"|harmonic_stddev)_(time|nedge|TEPS|validate|validation_time)\s*:\s*!?\s*({NUMBER})\s*s?$"
    )
    def statistic(self, match: re.Match[str], line: Line) -> None:
        what = "validate" if match[3].startswith("valid") else match[3]
        key = match[1] or "", match[2], what
        if key not in self.values:
            self.values[key] = match[4]
        elif self.values[key] != match[4] and len(self.warnings) < 5:
            if what == "nedge":  # printed again for the second kernel
                self.values["sssp", match[2], what] = match[4]
            else:
                self.warnings.append(f"another value follows: {excerpt(match[0], 60)}")

    @rule(
        r"(SCALE|edgefactor|NBFS|nbfs|NSSSPs?|num_mpi_processes|num_omp_threads|nvtx|terasize"
        r"|graph_generation|generation_time|construction_time|redistribution_time|compression_level"
        rf"|alpha|beta)\s*:\s*!?\s*({NUMBER})\s*s?$"
    )
    def fact(self, match: re.Match[str], line: Line) -> None:
        self.header[match[1]] = match[2]

    @rule(
        r"(?:No results printed for invalid run|Validation failed for this|Validation Error"
        r"|[Vv]alidation (?:result\s*)?:?\s*(?:FAIL|NG|failed)).*"
    )
    def failure(self, match: re.Match[str], line: Line) -> None:
        self.bad = self.bad or excerpt(match[0])

    @rule(_ROOT)
    def root(self, match: re.Match[str], line: Line) -> None:
        self.roots += 1

    def runs(self) -> Iterator[Run]:
        if not (self.header or self.values or self.roots or self.bad):
            return
        draft = self.draft(
            parameters=_parameters(self),
            variant="-".join(dict.fromkeys(k or "bfs" for k in self.kernels())),
            stops=[*self.stops, self.block.take_trouble()],
        )
        draft.mark_invalid(self.bad or _problem(self, draft.metrics))
        if not self.kernels() or any(_missing(self, kernel) for kernel in self.kernels()):
            roots = self.roots
            draft.mark_truncated(f"after {roots} lines on search keys" if roots else "within the summary")
        if draft.ok and not any(key[2] == "validate" for key in self.values):
            draft.warnings.append("the log has no validation times: was validation skipped?")
        if any(_not_validated(self, kernel) for kernel in ("", *self.kernels())):
            draft.suspicions.append("validation was skipped: its times are -1 s")
        draft.warn_stop("after the result")
        yield draft.run()


@PARSERS.register("graph500")
class Graph500(NetworkParser):
    """Reads the summaries of key and value; a summary may hold both kernels."""

    benchmark = "graph500"
    description = "Graph500: summaries of the reference versions 2 and 3, BFS and SSSP"
    validity_notes = Proof(
        identity="`SCALE: 20` at the beginning of a line, `graph_generation:`, a statistic of TEPS, `Running BFS`",
        success="the last statistic of each kernel's summary; quartiles in order; rates are edges over times",
        failure="`Validation failed`, `No results printed for invalid run`, a rate of 0 or one that edges and time refute",
    )
    programs = (r"graph500_[\w]{2,40}",)
    output = _Summary
    start_patterns = (
        r"SCALE:[ \t]+\d{1,2}[ \t]*(?=[\r\n]|\Z)",
        r"graph_generation:[ \t]+\d",
        r"(?:(?:bfs|sssp)[ \t_]+)?(?:min|median|harmonic_mean)_TEPS:",
        r"No results printed for invalid run",
        r"Running (?:BFS|SSSP)[ \t]+\d+",
    )
    also = (*start_patterns, *NetworkParser.also)

    def matches(self, line: Line) -> bool:
        """Refuse an indented `SCALE: 2`: a key of some configuration."""
        return not line.text.startswith((" SCALE", "  ", "\t"))


def _parameters(summary: _Summary) -> dict[str, Parameter]:
    out: dict[str, Parameter] = {}
    for key, printed in summary.header.items():
        value = number(printed)
        if key not in _TIMES and value is not None:
            out[key] = int(value) if value == int(value) and abs(value) < 1e18 else value
    return out


def _missing(summary: _Summary, kernel: str) -> str:
    """Name the first statistic that the summary of a kernel lacks."""
    keys = {(statistic, what) for k, statistic, what in summary.values if k == kernel}
    wanted = ["harmonic_mean_TEPS"]
    if kernel == "sssp" and ("firstquartile", "TEPS") not in keys:
        wanted = ["max_TEPS"]
    elif ("stddev", "time") in keys:
        wanted.append("harmonic_stddev_TEPS")
    if any(what == "validate" for _, what in keys):
        wanted.append("stddev_validate" if ("stddev", "time") in keys else "max_validate")
    return next((statistic for statistic in wanted if tuple(statistic.rsplit("_", 1)) not in keys), "")


def _not_validated(summary: _Summary, kernel: str) -> bool:
    """Tell whether validation was skipped: the program prints -1 s for each then."""
    return number(summary.values.get((kernel, "max", "validate"), "")) == -1


def _problem(summary: _Summary, metrics: list[LogMetric]) -> str:
    """Fill `metrics` and say what is wrong with the first wrong value."""
    problem = ""
    for (kernel, statistic, what), printed in summary.values.items():
        if not printed or (statistic, what) == ("stddev", "validate"):
            continue
        if what == "validate" and _not_validated(summary, kernel):
            continue
        column = _column(statistic, what)
        phase = kernel or ("bfs" if what in ("time", "TEPS", "validate") else None)
        metric = cell_metric(column, printed, phase=phase)
        if metric is None:
            problem = problem or f"{column.name} is {printed}"
            continue
        metrics.append(metric)
        if what == "TEPS" and metric.value == 0 and "stddev" not in statistic:
            problem = problem or f"{column.name} is {printed}"
        if (why := impossible(metric)) is not None:
            problem = problem or why
    for key in _TIMES:
        if (printed := summary.header.get(key, "")) and (metric := cell_metric(_time_column(key), printed)):
            metrics.append(metric)
            if (why := impossible(metric)) is not None:
                problem = problem or why
    return problem or _contradiction(summary)


def _column(statistic: str, what: str) -> Column:
    name, spread = f"{statistic}_{what}", statistic.endswith("stddev")
    if what == "TEPS":
        registered = None if spread else "traversal_rate"
        return Column(name, "TEPS", direction=Direction.LOWER if spread else Direction.HIGHER, registered=registered)
    if what == "nedge":
        return Column(name, "1", direction=Direction.NEUTRAL)
    registered = "benchmark_time" if what == "time" and not spread else None
    return Column(name, "s", registered)


def _time_column(key: str) -> Column:
    return Column(key, "s", "benchmark_time")


def _contradiction(summary: _Summary) -> str:
    values = summary.values
    for kernel in summary.kernels():
        for what in ("time", "nedge", "TEPS"):
            chain = [v for s in _ORDER if (v := values.get((kernel, s, what))) is not None]
            for low, high in itertools.pairwise(chain):
                if not between(low, low, high):
                    return f"{kernel} {what}: the quartiles {low} and {high} are not in order".strip()
        edges = [
            number(values.get((kernel, end, "nedge")) or values.get(("", end, "nedge"), "")) for end in ("min", "max")
        ]
        for rate_of, time_of in _PAIRS:
            rate = values.get((kernel, rate_of, "TEPS"))
            time = number(values.get((kernel, time_of, "time"), ""))
            if rate is None or not time or edges[0] is None or edges[1] is None:
                continue
            if not agree(rate, edges[0] / time, edges[1] / time, 2e-3):
                return (
                    f"the log prints {kernel} {rate_of}_TEPS = {rate}, but {edges[1]:g} edges over "
                    f"the {time_of} time of {time:g} s are {edges[1] / time:.6g}"
                ).replace("  ", " ")
    scale, factor = (number(summary.header.get("SCALE", "")), number(summary.header.get("edgefactor", "")))
    most = number(values.get(("", "max", "nedge"), ""))
    if scale is not None and factor and most and 0 < scale < 60 and most > 1.01 * factor * 2**scale:
        return f"max_nedge = {most:.12g} is more than {factor:g} x 2^{scale:g} edges"
    return ""
