"""SuperBench's own table of STREAM on GPUs: a row for each kernel, device and block size.

`STREAM_COPY_double_gpu_0_buffer_BYTES_block_128 RATE PERCENT`: the rate in GB/s of 10^9 bytes, and what that is
of the device's peak, which the line of the device names. The harness runs other benchmarks too: those print
what they always print, and their own parsers read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.hpc.base import PARSERS, LogMetric, Parameter, Proof, Run, Series
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import differ
from transect.hpc.rules import Output, OutputParser, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, log_metric, number

_ROW_START = r"STREAM_(?:COPY|SCALE|ADD|TRIAD)_(?:double|float)_gpu_\d"
_KEYS = {
    "Buffer size(bytes)": "buffer_bytes",
    "Number of warm up runs": "warm_ups",
    "Number of loops": "loops",
    "Check data": "check_data",
}
_KERNELS = ("copy", "scale", "add", "triad")
_CORRECT = re.compile(r"(?:[Vv]erification|[Cc]heck(?:ing)?) [^\n]{0,80}[Ff]ail")


@dataclass(slots=True)
class _Gpu:
    line: int
    # (kernel, block size) -> rate and percent as printed
    rows: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    facts: dict[str, Parameter] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Output(Output):
    devices: dict[str, str] = field(default_factory=dict)
    peaks: dict[str, str] = field(default_factory=dict)
    gpus: dict[str, _Gpu] = field(default_factory=dict)

    def begins(self, text: str) -> bool:
        return bool(self.gpus) and text.startswith("Buffer size(bytes): ")

    @rule(r"(Buffer size\(bytes\)|Number of warm up runs|Number of loops|Check data): (\S{1,20})")
    def head(self, match: re.Match[str], line: Line) -> None:
        self.facts[_KEYS[match[1]]] = int(match[2]) if match[2].isdecimal() else match[2]

    @rule(r"Device (\d{1,4}): \"([^\"]{0,100})\"(?:[^\n=]{0,200}=\s*([\d.]{1,20}) GB/s PEAK)?")
    def device(self, match: re.Match[str], line: Line) -> None:
        self.devices[match[1]], self.peaks[match[1]] = match[2], match[3] or ""

    @rule(
        r"STREAM_(COPY|SCALE|ADD|TRIAD)_(double|float)_gpu_(\d{1,4})_buffer_(\d{1,16})_block_(\d{1,6})"
        rf"\s+({NUMBER})(?:\s+({NUMBER}))?\s*$"
    )
    def row(self, match: re.Match[str], line: Line) -> None:
        kernel, precision, place, size, threads, rate, percent = match.groups()
        gpu = self.gpus.setdefault(place, _Gpu(line=line.number))
        gpu.facts.update(precision=precision, buffer_bytes=int(size))
        gpu.rows[kernel.lower(), int(threads)] = (rate, percent or "")

    @rule(r".+", wanted=r"(?:CUDA|HIP) [Ee]rror")
    @rule(_CORRECT)
    def failure(self, match: re.Match[str], line: Line) -> None:
        self.stop(excerpt(match.string), most=3)

    def runs(self) -> Iterator[Run]:
        stops = [*self.stops, self.block.take_trouble()]
        for place, gpu in self.gpus.items():
            metrics, facts = _metrics(gpu)
            unchecked = str(self.facts.get("check_data", "No")).lower() != "yes"
            draft = self.draft(
                gpu.line,
                benchmark="stream",
                variant="superbench",
                metrics=metrics,
                parameters=self.facts | gpu.facts | facts | {"gpu": int(place), "device": self.devices.get(place, "")},
                samples=_samples(gpu),
                stops=stops,
                suspicions=["its sums were not checked (Check data: No)"] if unchecked else [],
            )
            _judge(draft, gpu, self.peaks.get(place, ""))
            yield draft.run()
        if not self.gpus and (self.facts or self.devices):
            draft = self.draft(benchmark="stream", variant="superbench", stops=stops)
            draft.mark_incomplete("ends before the first result")
            yield draft.run()


@PARSERS.register("superbench")
class SuperBench(OutputParser):
    """Reads a run of STREAM for each device; a kernel's result is that of its best block size."""

    benchmark = "superbench"
    description = "SuperBench's GPU STREAM table (yields runs of stream)"
    validity_notes = Proof(
        identity="a row `STREAM_COPY_double_gpu_0_buffer_…_block_…`, `Buffer size(bytes):`",
        success="all four kernels with the same block sizes; without `Check data: Yes` it is `suspicious`",
        failure="a verification that failed, a rate that the printed share of the peak refutes",
    )
    output = _Output
    start_patterns = (_ROW_START, r"Buffer size\(bytes\): \d")
    also = start_patterns


def _metrics(gpu: _Gpu) -> tuple[list[LogMetric], dict[str, Parameter]]:
    """Return each kernel's best rate, and its block size as a parameter."""
    metrics, facts = [], dict[str, Parameter]()
    for kernel in _KERNELS:
        rates = {
            threads: value
            for (name, threads), (rate, _) in gpu.rows.items()
            if name == kernel and (value := number(rate)) is not None
        }
        if not rates:
            continue
        best = max(rates, key=lambda threads: rates[threads])
        metric = log_metric(kernel, gpu.rows[kernel, best][0], "GB/s", registered="memory_bandwidth")
        if metric is not None:
            metrics.append(metric)
            facts[f"{kernel}_block"] = best
    return metrics, facts


def _samples(gpu: _Gpu) -> dict[str, Series]:
    """Return each kernel's rates, of all block sizes in rising order."""
    found: dict[str, list[float]] = {}
    for (kernel, _), (rate, _) in sorted(gpu.rows.items()):
        value = number(rate)
        if value is not None:
            found.setdefault(kernel, []).append(value)
    return {kernel: Series(unit="GB/s", values=values) for kernel, values in found.items()}


def _judge(draft: Draft, gpu: _Gpu, peak: str) -> None:
    if "ail" in draft.stop and _CORRECT.search(draft.stop):
        draft.mark_invalid(f"the log says: {draft.stop}")
    broken = next((rate for rate, _ in gpu.rows.values() if number(rate) is None), None)
    if broken is not None:
        draft.mark_invalid(f"a rate is {broken}")
    draft.mark_impossible()
    most = number(peak) if peak else None
    for (kernel, threads), (rate, percent) in gpu.rows.items():
        share = number(percent) if percent else None
        implied = 100 * (number(rate) or 0.0) / most if most else None
        if share is not None and implied is not None and differ(implied, share, 1e-3, 0.02):
            draft.mark_invalid(
                f"{kernel}, block {threads}: {rate} GB/s of {peak} GB/s are {implied:.4g} %, the log prints {percent} %"
            )
    lacking = [kernel for kernel in _KERNELS if not any(name == kernel for name, _ in gpu.rows)]
    # Every kernel runs with the same block sizes.
    blocks = [{size for name, size in gpu.rows if name == kernel} for kernel in _KERNELS]
    if lacking:
        draft.mark_incomplete(f"no {', '.join(lacking)}")
    elif any(found != blocks[0] for found in blocks):
        draft.mark_incomplete("the rows of its last kernel are not whole")
