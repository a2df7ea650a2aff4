"""onnxruntime_perf_test, all wordings: ONNX Runtime's own benchmark of one model.

`cost:734.606 ms`, `cost: 734.606 ms` and `cost total: 734.606 ms` are one number of three versions;
the oldest prints no unit (seconds). Newer ones print CPU use and memory twice. The rate counts
requests, whatever their batch; it is requests over run time, and the average is total time over
requests (performance_runner.cc): both are recomputed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Normalised, Proof, Run
from transect.hpc.draft import Draft
from transect.hpc.parsers._learning import ERRORS, LoggedOutput, implausible
from transect.hpc.rules import OutputParser, keeps, rule
from transect.hpc.text import Line
from transect.hpc.values import NUMBER, contradiction, number

_VALUE = rf"[ \t]*({NUMBER})[ \t]*(s|sec|seconds|ms|us|%|bytes|KB|MB)?(?=[\s(,;]|$)"
_ROW = re.compile(
    r"(?P<label>Session creation time cost|Total session creation time|First inference time cost"
    r"|Total inference time cost|Total inference requests|Total inference run time|Total run time"
    r"|Total time cost|Total iterations|Average time cost"
    r"|Average inference time cost(?: [a-zA-Z]{1,20})?"
    r"|Number of (?:inferences|requests|iterations) per second|(?:Avg|Average|Total) CPU usage"
    r"|Peak working set size|Runs|(?:Min|Max|P\d{1,4}) Latency)"
    r"[ \t]*(?::|=|is)" + _VALUE
)
_THREADS = re.compile(r"Setting (intra|inter)_op_num_threads to[ \t]+(\d{1,6})")
_RANK = re.compile(r"latency_p\d{1,4}$")
# Label -> (name, unit when none is printed).
_NAMES = {
    "Session creation time cost": ("session_creation", "s"),
    "Total session creation time": ("session_creation", "s"),
    "First inference time cost": ("first_inference", "ms"),
    "Total inference time cost": ("total_time", "s"),
    "Total time cost": ("total_time", "s"),
    "Total inference requests": ("requests", "1"),
    "Total iterations": ("requests", "1"),
    "Total inference run time": ("run_time", "s"),
    "Total run time": ("run_time", "s"),
    "Average time cost": ("average", "ms"),
    "Peak working set size": ("peak_working_set", "B"),
    "Runs": ("runs", "1"),
}
_UNITS = {"sec": "s", "seconds": "s", "bytes": "B"}
_TO_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_BYTES = {"B": 1.0, "KB": 1024.0, "MB": 1048576.0}


@dataclass(kw_only=True)
class _Output(LoggedOutput):
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)  # name -> digits, unit

    def value(self, name: str) -> float | None:
        """Return a value in seconds, bytes or as it is."""
        if name not in self.rows:
            return None
        printed, unit = self.rows[name]
        value = number(printed)
        return None if value is None else value * _TO_SECONDS.get(unit, _BYTES.get(unit, 1.0))

    @staticmethod
    def text_of(line: Line) -> str:
        return line.text.strip()

    def begins(self, text: str) -> bool:
        """Tell whether a line opens the next session: its first row, or its settings, once more."""
        match = _ROW.match(text)
        if match is None:
            return len(self.rows) > 1 and _THREADS.match(text) is not None
        name = _name(match["label"])[0]
        if name not in self.rows:
            return False
        if name in ("session_creation", "total_time", "first_inference"):
            return True
        # CPU use and memory come twice; so do latencies with `-s` and a result file.
        return name in ("average", "requests", "run_time") and self.rows[name][0] != match[2]

    @rule(_ROW)
    def row(self, match: re.Match[str], line: Line) -> None:
        name, usual = _name(match["label"])
        printed, unit = match[2], _UNITS.get(match[3] or "", match[3] or usual)
        before = self.rows.setdefault(name, (printed, unit))
        if before[0] != printed and len(self.warnings) < 10:
            self.warnings.append(f"{name} is {before[0]}, later {printed}")

    @rule(_THREADS, wanted="")
    def threads(self, match: re.Match[str], line: Line) -> None:
        self.facts.setdefault(f"{match[1]}_op_num_threads", int(match[2]))

    @rule(r"Disabling (\S+)", wanted="")
    def spinning(self, match: re.Match[str], line: Line) -> None:
        self.facts.setdefault(f"{match[1]}_thread_spinning", "disabled")

    @rule(r"[Uu]sing (\w{1,60}ExecutionProvider)|(?:EP|Provider)[ \t]*:[ \t]*(\w{1,60})")
    def provider(self, match: re.Match[str], line: Line) -> None:
        self.facts.setdefault("execution_provider", match[1] or match[2])

    refusal = keeps(
        r"(?:error|failed|exception)\b|perf_test[^\n]{0,40}failed|failed to initialize", "stops", flags=re.IGNORECASE
    )

    def runs(self) -> Iterator[Run]:
        if not (self.rows or self.facts or self.stops):
            return
        for name in ("requests", "runs"):
            printed = self.rows.get(name, ("", ""))[0]
            if printed.isdigit() and len(printed) < 18:
                self.facts[name] = int(printed)
        average = any(name.startswith("average_") and "cpu" not in name for name in self.rows)
        draft = self.draft(variant="split average" if average else "", stops=[self.block.take_trouble(), *self.stops])
        _add_metrics(draft, self)
        _judge(draft, self)
        yield draft.run()


@PARSERS.register("onnxruntime-perf-test")
class OnnxruntimePerfTest(OutputParser):
    """Reads rates, latencies, CPU use and memory."""

    benchmark = "onnxruntime-perf-test"
    description = "onnxruntime_perf_test: latencies and rate of one ONNX model"
    validity_notes = Proof(
        identity="its lines about sessions, inferences and latencies, `Setting intra_op_num_threads to 4`",
        success="a rate or a median, or average, total time and requests; all of them agree",
        failure="no request, an average outside of least and most, numbers that contradict each other",
    )
    output = _Output
    start_patterns = (
        r"Setting (?:intra|inter)_op_num_threads to[ \t]+\d",
        r"Disabling (?:intra|inter)-op thread spinning",
        r"Session creation time cost[ \t]?:",
        r"(?:First|Total|Average) inference (?:time cost|requests|run time)",
        r"Total time cost:[\d.eE+\-]{1,20}[ \t]*s?[ \t]*(?=[\r\n]|\Z)",
        r"Number of inferences per second",
        r"P(?:50|90|95|99|999) Latency[ \t]?(?::|is)[ \t]?\d",
    )
    also = (*start_patterns, *ERRORS)


def _name(label: str) -> tuple[str, str]:
    if label in _NAMES:
        return _NAMES[label]
    if label.startswith("Average inference time cost"):
        kind = label.removeprefix("Average inference time cost").strip().lower()
        return ("average" if kind in ("", "total") else f"average_{kind}"), "ms"
    if label.endswith("per second"):
        return "requests_per_second", "1/s"
    if label.endswith("CPU usage"):
        return ("total_cpu_usage" if label.startswith("Total") else "average_cpu_usage"), "%"
    return f"latency_{label.split()[0].lower()}", "s"


def _add_metrics(draft: Draft, output: _Output) -> None:
    registered = {
        "latency_p50": "latency",
        "latency_p95": "latency_p95",
        "session_creation": "session_time",
        "requests_per_second": "throughput",
    }
    if "latency_p50" not in output.rows and "average" in output.rows:
        registered["average"] = "latency"
        draft.warnings.append("no percentiles in the log: the average stands for the median")
    for name, (printed, unit) in output.rows.items():
        if name in ("requests", "runs"):
            continue
        way = Direction.NEUTRAL if name.endswith("cpu_usage") else None
        way = Direction.LOWER if name == "peak_working_set" else way
        metric = draft.add_metric(name, printed, unit, way, registered=registered.get(name))
        if name == "peak_working_set" and metric is not None:
            value = output.value(name) or 0.0
            draft.metrics[-1] = replace(metric, normalised=Normalised(name="peak_memory", value=value, unit="B"))


def _judge(draft: Draft, output: _Output) -> None:
    rows = output.rows
    missing = [name for name in ("average", "total_time", "requests") if name not in rows]
    if missing and not {"requests_per_second", "latency_p50"} & set(rows):
        if draft.stop:
            draft.mark_truncated("before the result")
        only = "only the session creation: " if "session_creation" in rows else ""
        draft.mark_incomplete(f"{only}no result")
    for name, (printed, _) in rows.items():
        if number(printed) is None:
            draft.mark_invalid(f"{name} is {printed}")
    draft.mark_impossible(why=implausible)
    if draft.ok:
        draft.mark_invalid(_contradicted(output))


def _contradicted(output: _Output) -> str | None:
    rows, requests = output.rows, output.value("requests")
    if requests == 0:
        return "no request was made"
    total, average = rows.get("total_time"), rows.get("average")
    if requests and total and average and average[1] in _TO_SECONDS and total[1] == "s":
        # Requests per second of request time, as the average says it: 1 over the average.
        mean = (number(total[0]) or 0.0) / requests
        stated = output.value("average") or 0.0
        if abs(mean - stated) > 2e-3 * max(mean, stated):
            return (
                f"the average is {average[0]} {average[1]}, but {total[0]} s over"
                f" {requests:.0f} requests are {mean * 1e3:.6g} ms"
            )
    run, rate = rows.get("run_time"), rows.get("requests_per_second")
    if requests and run and rate and run[1] == "s":
        why = contradiction(requests, rate[0], run[0], "requests per second")
        if why:
            return why
    ranks = sorted((n for n in rows if _RANK.match(n)), key=_quantile)
    order = ["latency_min", *ranks, "latency_max"]
    known = [(n, v) for n in order if (v := output.value(n)) is not None]
    for (low, a), (high, b) in itertools.pairwise(known):
        if a > b:
            return f"{low} = {rows[low][0]} s is above {high} = {rows[high][0]} s"
    stated_average, least, most = (output.value(n) for n in ("average", "latency_min", "latency_max"))
    if stated_average and least and most and not least * 0.99 <= stated_average <= most * 1.01:
        return f"the average {stated_average:.6g} s is outside of min {least:.6g} s, max {most:.6g} s"
    return None


def _quantile(name: str) -> float:
    return float(f"0.{name.removeprefix('latency_p')}")
