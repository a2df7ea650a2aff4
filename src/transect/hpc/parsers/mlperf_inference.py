"""MLPerf Inference: the summary that LoadGen writes (mlperf_log_summary.txt, and the same on a terminal).

LoadGen judges a run itself. Offline issues one query, so its samples over its longest latency are the rate; a single
stream's rate is one over its mean latency.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.hpc.base import PARSERS, Proof, Run
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import disagree
from transect.hpc.rules import Output, OutputParser, rule, searched, sets
from transect.hpc.text import Line
from transect.hpc.values import NUMBER, number

_HEAD = re.compile(r"MLPerf Results Summary\s*$")
# The name of a scenario's result, its unit, what it is in the registry, and which way is better.
_RESULTS = {
    "Samples per second": ("samples/s", "throughput"),
    "Completed samples per second": ("samples/s", "throughput"),
    "Scheduled samples per second": ("samples/s", None),
    "Tokens per second": ("tokens/s", None),
    "Completed tokens per second": ("tokens/s", None),
    "Samples per query": ("1", None),
}
_LATENCY = re.compile(r"(?:(?:[\d.]{2,8}(?:th)? percentile|Mean|Min|Max) latency|90th percentile latency) \(ns\)")
_SETTINGS = (
    "samples_per_query",
    "target_qps",
    "min_duration (ms)",
    "min_query_count",
    "performance_sample_count",
    "target_latency (ns)",
    "accuracy_log_probability",
)


@dataclass(kw_only=True)
class _Output(Output):
    headed: bool = False
    summary: dict[str, str] = field(default_factory=dict)

    def begins(self, text: str) -> bool:
        """Tell whether another summary follows, be it of a run that printed no more than the head."""
        return self.headed and _HEAD.match(text) is not None

    head = sets(_HEAD, "headed", True, wanted="")

    @rule(r"([A-Za-z0-9][\w ./()]{1,60}?)\s*: ?(\S[^\n#]{0,120})")
    def pair(self, match: re.Match[str], line: Line) -> None:
        if not line.cut:
            self.summary.setdefault(match[1], match[2].strip())

    def runs(self) -> Iterator[Run]:
        yield _run(self.draft(), self.summary)


@PARSERS.register("mlperf-inference")
class MlperfInference(OutputParser):
    """Reads a run per summary."""

    benchmark = "mlperf-inference"
    description = "MLPerf Inference: LoadGen's summary (mlperf_log_summary.txt)"
    validity_notes = Proof(
        identity="`MLPerf Results Summary`",
        success="`Result is : VALID`",
        failure="`Result is : INVALID`, with what was not satisfied; a rate that its own latencies refute",
    )
    output = _Output
    start_patterns = searched(_HEAD)
    also = start_patterns


def _run(draft: Draft, summary: dict[str, str]) -> Run:
    draft.variant = summary.get("Scenario", "").replace(" ", "")
    draft.parameters |= {key: summary[key] for key in ("SUT name", "Mode") if key in summary}
    draft.parameters |= {key: summary[key] for key in _SETTINGS if key in summary}
    for key, (unit, registered) in _RESULTS.items():
        if key in summary:
            shown = {"samples/s": "1/s"}.get(unit, unit) if registered else unit
            draft.add_metric(key.lower().replace(" ", "_"), summary[key], shown, registered=registered)
    for key, printed in summary.items():
        if _LATENCY.fullmatch(key):
            name = key.removesuffix(" (ns)").lower().replace(" ", "_")
            stream = draft.variant == "SingleStream" and name == "mean_latency"
            draft.add_metric(name, printed, "ns", registered="latency" if stream else None)
    verdict = summary.get("Result is", "").split()
    if verdict[:1] == ["INVALID"]:
        unmet = [key for key, value in summary.items() if key.endswith("satisfied") and value.upper().startswith("NO")]
        draft.mark_invalid(f"LoadGen says INVALID: {', '.join(unmet) or 'without a reason'}")
    draft.mark_invalid(_refuted(draft.variant, summary))
    if summary.get("Mode", "").startswith("Accuracy") and not draft.metrics:
        draft.mark_no_result("a run for accuracy has no rate")
    if not verdict:
        draft.mark_incomplete("no verdict (Result is)")
    draft.mark_impossible()
    return draft.run()


def _refuted(scenario: str, summary: dict[str, str]) -> str | None:
    """Say why the rate of a scenario is not what its latencies give."""
    if scenario == "Offline":
        samples, longest = (number(summary.get("samples_per_query", "")), number(summary.get("Max latency (ns)", "")))
        rate = summary.get("Samples per second", "")
        if samples and longest and re.fullmatch(NUMBER, rate):
            return disagree("samples per second", rate, samples / longest * 1e9, 0.02, "1/s")
    elif scenario == "SingleStream":
        mean = number(summary.get("Mean latency (ns)", ""))
        if mean:
            return disagree(
                "QPS without LoadGen's own work", summary.get("QPS w/o loadgen overhead", ""), 1e9 / mean, 0.02, "1/s"
            )
    return None
