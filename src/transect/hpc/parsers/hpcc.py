"""HPC Challenge: the key=value summary at the end of `hpccoutf.txt`.

A file may hold several runs, since the program appends. A value of -1 was not run. Rates named
`Star` are means per process while all processes run; `Single` ran on one process alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.hpc.base import PARSERS, Parameter, Proof, Run, RunStatus
from transect.hpc.draft import Draft
from transect.hpc.parsers.hpl import hpl_gflop
from transect.hpc.rules import Output, OutputParser, keeps, rule, sets
from transect.hpc.text import Line
from transect.hpc.values import contradiction, number

_BANNER = re.compile(r"This is the DARPA/DOE HPC Chall[ae]nge Benchmark version\s+(\S{1,20})")
_UNVERIFIED = 1e-30  # smaller values are uninitialised memory

_HOW = ("MPI", "Star", "Single")
_PATTERNS = ("MinPingPong", "AvgPingPong", "MaxPingPong", "NaturallyOrderedRing", "RandomlyOrderedRing")
# Key of the summary: (unit, metric of the registry or None, phase).
_METRICS: dict[str, tuple[str, str | None, str]] = {
    "HPL_Tflops": ("TFLOP/s", "flops", "hpl"),
    "HPL_time": ("s", "benchmark_time", "hpl"),
    **{f"{how}DGEMM_Gflops": ("GFLOP/s", "flops", f"{how.lower()}-dgemm") for how in _HOW[1:]},
    **{f"{how}FFT_Gflops": ("GFLOP/s", "flops", f"{how.lower()}-fft") for how in _HOW},
    "PTRANS_GBs": ("GB/s", None, "ptrans"),
    "PTRANS_time": ("s", "benchmark_time", "ptrans"),
    "MPIRandomAccess_time": ("s", "benchmark_time", "mpi-random-access"),
    **{
        f"{how}RandomAccess{kind}_GUPs": ("GUP/s", "update_rate", f"{how.lower()}-random-access{kind.lower()}")
        for how in _HOW
        for kind in ("", "_LCG")
    },
    **{
        f"{how}STREAM_{kernel}": ("GB/s", "memory_bandwidth", f"{how.lower()}-stream-{kernel.lower()}")
        for how in _HOW[1:]
        for kernel in ("Copy", "Scale", "Add", "Triad")
    },
    **{f"{name}Latency_usec": ("us", "network_latency", name.lower()) for name in _PATTERNS},
    **{f"{name}Bandwidth_GBytes": ("GB/s", "network_bandwidth", name.lower()) for name in _PATTERNS},
}


@dataclass(kw_only=True)
class _Output(Output):
    section: str = ""
    pairs: dict[str, str] = field(default_factory=dict)
    summary_line: int = 0
    failures: list[str] = field(default_factory=list)
    complete: bool = False
    head: bool = False

    def begins(self, text: str) -> bool:
        again = text.startswith("Begin of Summary") and self.summary_line > 0
        return (again or _BANNER.match(text) is not None) and (self.head or bool(self.section))

    def following(self, line: Line, text: str) -> _Output:
        return _Output(block=self.block, line=line.number, version=self.version)

    @rule(_BANNER, wanted="")
    def banner(self, match: re.Match[str], line: Line) -> None:
        self.version, self.head = match[1], True

    @rule(r"(Begin|End) of (\S{1,40}) section\.", wanted="")
    def section_line(self, match: re.Match[str], line: Line) -> None:
        self.section = f"{match[1]} of {match[2]} section"
        if match[2] == "Summary":
            self.complete = match[1] == "End"
            self.summary_line = self.summary_line or line.number

    @rule(r"([A-Za-z]\w{1,60})\s*=\s*(\S{1,80})$", wanted=r"[A-Za-z]\w{1,60}[ \t]*=[ \t]*\S")
    def pair(self, match: re.Match[str], line: Line) -> None:
        if self.summary_line and not self.complete:
            self.pairs[match[1]] = match[2]

    @rule(r"\|\|Ax-b\|\|[^=]{0,120}=\s*(\S{1,30})\s*\.{3,}\s*FAILED")
    def failed(self, match: re.Match[str], line: Line) -> None:
        self.failures.append(f"HPL residual {match[1]} FAILED")

    error = keeps(r"(?:HPL ERROR|>>>).*", "failures")

    end = sets(r"End of HPC Chall[ae]nge tests", "ended", True)

    def runs(self) -> Iterator[Run]:
        pairs = self.pairs
        version = ".".join(pairs[k] for k in ("VersionMajor", "VersionMinor", "VersionMicro") if k in pairs)
        draft = self.draft(
            self.summary_line or None,
            version=version or self.version,
            stops=[self.block.take_trouble()],
            parameters={k: _parameter(v) for k, v in pairs.items() if k not in _METRICS},
        )
        _add_metrics(draft, pairs)
        _judge(draft, self)
        yield draft.run()


@PARSERS.register("hpcc")
class Hpcc(OutputParser):
    """Reads summaries; HPL and STREAM inside the output belong to them."""

    benchmark = "hpcc"
    description = "HPC Challenge: the summary section of hpccoutf.txt"
    validity_notes = Proof(
        identity="the DARPA/DOE banner, or `Begin of … section.`",
        success="a whole summary with `Success=1`; HPL's rate agrees with N and time",
        failure="`Success` other than 1, a `FAILED` residual, `HPL ERROR`, a value that is negative",
    )
    programs = (r"hpcc(?:\.exe)?",)
    output = _Output
    start_patterns = (
        r"This is the DARPA/DOE HPC Chall[ae]nge Benchmark",
        r"(?:Begin|End) of (?:Summary|HPL|PTRANS|LatencyBandwidth"
        r"|\w{0,12}(?:RandomAccess|STREAM|FFT|DGEMM)\w{0,8})"
        r" section\.",
    )
    also = start_patterns
    nested = frozenset({"hpl", "stream"})


def _parameter(text: str) -> Parameter:
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    value = number(text)
    return text if value is None else value


def _add_metrics(draft: Draft, pairs: dict[str, str]) -> None:
    absent = []
    for key, (unit, name, phase) in _METRICS.items():
        value = number(pairs.get(key, ""))
        if value is not None and value != -1 and abs(value) >= _UNVERIFIED:
            draft.add_metric(key, pairs[key], unit, registered=name, phase=phase)
        elif key in pairs:
            absent.append(key)
    draft.warnings = [f"not run: {', '.join(absent)}"] if absent else []


def _judge(draft: Draft, output: _Output) -> None:
    pairs, failures = output.pairs, "; ".join(output.failures[:3])
    if not output.complete:
        where = f"after '{output.section}'" if output.section else "before its first section"
        if not draft.stop and not pairs and failures:
            draft.set_status(RunStatus.FAILED, f"stopped {where}: {failures}")
        draft.mark_truncated(where, lacks=", without a whole summary")
    success = pairs.get("Success", "1")  # without it, the rest decides
    if success != "1":
        draft.mark_invalid(f"Success={success}: {failures or 'a test did not verify its result'}")
    if failures:
        draft.mark_invalid(f"Success={success}, but {failures}")
    draft.mark_impossible()
    draft.mark_invalid(_contradicted(pairs))
    if not draft.metrics:
        draft.mark_no_result("the summary holds no result")


def _contradicted(pairs: dict[str, str]) -> str | None:
    n, rate, time_s = (pairs.get(key, "") for key in ("HPL_N", "HPL_Tflops", "HPL_time"))
    if not re.fullmatch(r"\d{1,9}", n) or number(rate) is None or number(time_s) is None:
        return None
    why = contradiction(hpl_gflop(int(n)) / 1e3, rate, time_s, "TFLOP/s")
    return f"{why} (HPL_N = {n})" if why else None
