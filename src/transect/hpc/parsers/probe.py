"""Logs of transect's own probes (`transect.hpc.probes`): every sample is read and recounted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import METRICS
from transect.hpc.base import PARSERS, Proof, Run, Series
from transect.hpc.draft import Draft
from transect.hpc.parsers import _file_phases as _files
from transect.hpc.parsers._probe import ProbeOutput
from transect.hpc.rules import OutputParser, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import number

_REGISTERED = {"B/s": "memory_bandwidth", "FLOP/s": "flops"}
_PASSES = {"copy": 2, "scale": 2, "add": 3, "triad": 5}
# Kind of a result of the network probe -> (metric of the registry, series that it comes from).
_NETWORK = {
    "pingpong": ("message_time", "pingpong"),
    "allreduce": ("allreduce_time", "allreduce"),
    "allreduce-nodes": ("allreduce_time", "allreduce-nodes"),
    "latency": ("network_latency", "pingpong"),
    "bandwidth": ("network_bandwidth", "pingpong"),
}
# Of BLAS.
_PRECISIONS = {"sgemm": "fp32", "dgemm": "fp64", "lu": "fp64", "cg": "fp64"}
# Of conjugate gradients: operations that wait for the memory are no peak of arithmetic.
_SPARSE = {"cg": "sparse_flops"}


@dataclass(kw_only=True)
class _Output(ProbeOutput):
    verdicts: dict[str, str] = field(default_factory=dict)

    @rule(r"verify (\S{1,40}) (.{1,200}) (passed|FAILED)$")
    def verify(self, match: re.Match[str], line: Line) -> None:
        if self.verdicts.get(match[1]) != "FAILED":  # what failed once stays so
            self.verdicts[match[1]] = match[3]

    def runs(self) -> Iterator[Run]:
        draft = self.draft(
            variant="transect",
            version=str(self.format),
            parameters=self.parameters(),
            samples={k: Series(unit="s", values=v) for k, v in self.samples.items()},
        )
        for label, (best, median, unit, _) in self.results.items():
            kind, _, size = label.rpartition("-")
            registered = _NETWORK[kind][0] if kind in _NETWORK else _SPARSE.get(label, _REGISTERED.get(unit))
            if self.probe == "file":
                registered = _files.registered(self.fields, label, unit)
            fits = registered is not None and METRICS[registered].unit == unit
            sized = bool(kind) and size.isdecimal() and len(size) < 10
            phase = kind if sized else label
            for which, printed in (("best", best), ("median", median)):
                draft.add_metric(
                    f"{phase}_{which}",
                    printed,
                    unit,
                    phase=phase,
                    registered=registered if fits else None,
                    size=int(size) if sized else None,
                    precision=_PRECISIONS.get(phase),
                )
        _judge(draft, self)
        if self.fields.get("beyond_cache") == "no":
            level = self.fields.get("level", "")
            draft.warnings.append(f"this is not the bandwidth of main memory alone: {level}")
        yield draft.run()


def _judge(draft: Draft, output: _Output) -> None:
    if f"{output.probe}-probe" != draft.block.benchmark:
        draft.mark_no_result(f"this is a log of the probe '{output.probe}'")
    output.judge_end(draft)
    wrong = sorted(label for label, verdict in output.verdicts.items() if verdict != "passed")
    if wrong:
        draft.mark_invalid(f"wrong result: {', '.join(wrong)}")
    status = output.fields.get("status", "missing")
    if status != "ok":
        draft.mark_invalid(f"status: {excerpt(status)}")
    if not output.results or not output.verdicts:
        draft.mark_no_result("the log holds no result or no verification")
    draft.mark_impossible()
    for label in output.results:
        if draft.ok:
            draft.mark_invalid(_recount(output, label))


def _recount(output: _Output, label: str) -> str | None:
    """Compare the printed numbers with the samples, by the counting rule of the probe."""
    kind, _, size = label.rpartition("-")
    series = f"{_NETWORK[kind][1]}-{size}" if kind in _NETWORK else label
    unit = output.results[label].unit
    work = 1.0 if unit == "s" else _work(output, label, unit)
    why = output.recount(label, output.samples.get(series, []), work, of_time=unit == "s")
    if why is None and series != label and series not in output.results:
        return f"{label}: it comes from {series}, which is not in the log"
    needed = _files.checked(label) if output.probe == "file" else series
    if why is None and (kind in _NETWORK or output.probe == "file") and size != "0" and needed not in output.verdicts:
        return f"{label}: the log does not say that its results were right"
    return why


def _work(output: _Output, label: str, unit: str) -> float | None:
    """Bytes or operations of one run, by the counting rule of the probe."""
    if output.probe == "file":
        return _files.work(output.fields, label)
    kind, _, size = label.rpartition("-")
    if not re.fullmatch(r"\d{1,9}", size):
        size = ""
    if kind == "bandwidth":
        return float(size) if size else None
    if unit == "B/s":
        array = number(output.fields.get("array_bytes", ""))
        return None if array is None or label not in _PASSES else _PASSES[label] * array
    if label in _COUNTS:
        return _COUNTS[label](output)
    return 2.0 * int(size) ** 3 if kind and size else None


def _lu_operations(output: _Output) -> float | None:
    """As HPL counts."""
    n = number(output.fields.get("order", ""))
    return None if n is None else 2 / 3 * n**3 + 3 / 2 * n**2


def _cg_operations(output: _Output) -> float | None:
    """Of a set, as HPCG counts."""
    texts = [output.fields.get(name, "") for name in ("iterations", "rows")]
    k, rows, *entries = (number(text) for text in (*texts, *output.fields.get("entries", "").split()))
    if k is None or rows is None or len(entries) < 2 or None in entries:
        return None
    finest, *_, coarsest = known = [each for each in entries if each is not None]
    return 4 * (3 * k + 1) * rows + 2 * (k + 1) * finest + k * (10 * (sum(known) - coarsest) + 4 * coarsest)


_COUNTS = {"lu": _lu_operations, "cg": _cg_operations}


class _Probe(OutputParser):
    validity_notes = Proof(
        identity="its first line, which names the probe and the format",
        success="as `memory-bandwidth-probe`",
        failure="as `memory-bandwidth-probe`",
    )
    output = _Output


@PARSERS.register("memory-bandwidth-probe")
class MemoryBandwidthProbe(_Probe):
    """Reads logs of `transect.hpc.probes.memory_bandwidth`."""

    benchmark = "memory-bandwidth-probe"
    description = "transect's own probe of memory bandwidth with numpy"
    validity_notes = Proof(
        identity="its first line, which names the probe and the format",
        success="its last line, `status: ok`, passed verifications; every number is recounted from the samples",
        failure="a verification that `FAILED`, another status, a number that the samples do not give",
    )
    start_patterns = (r"transect probe memory-bandwidth \d",)


@PARSERS.register("matrix-multiply-probe")
class MatrixMultiplyProbe(_Probe):
    """Reads logs of `transect.hpc.probes.matrix_multiply`."""

    benchmark = "matrix-multiply-probe"
    description = "transect's own probe of matrix multiplication with numpy"
    start_patterns = (r"transect probe matrix-multiply \d",)


@PARSERS.register("network-probe")
class NetworkProbe(_Probe):
    """Reads logs of `transect.hpc.probes.network`."""

    benchmark = "network-probe"
    description = "transect's own probe of messages between ranks with mpi4py"
    start_patterns = (r"transect probe network \d",)


@PARSERS.register("lu-probe")
class LuProbe(_Probe):
    """Reads logs of `transect.hpc.probes.lu`."""

    benchmark = "lu-probe"
    description = "transect's own probe of dense linear equations with scipy's BLAS over ranks"
    start_patterns = (r"transect probe lu \d",)


@PARSERS.register("cg-probe")
class CgProbe(_Probe):
    """Reads logs of `transect.hpc.probes.cg`."""

    benchmark = "cg-probe"
    description = "transect's own probe of conjugate gradients on a stencil, over ranks"
    start_patterns = (r"transect probe cg \d",)


@PARSERS.register("file-probe")
class FileProbe(_Probe):
    """Reads logs of `transect.hpc.probes.files`. What memory may have given is no metric of the registry."""

    benchmark = "file-probe"
    description = "transect's own probe of files: bandwidth, small records, metadata, over ranks"
    start_patterns = (r"transect probe file \d",)
