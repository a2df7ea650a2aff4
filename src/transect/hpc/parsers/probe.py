"""Logs of transect's own probes (`transect.hpc.probes`): every sample is read and recounted."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.domain.metrics import METRICS, Direction
from transect.hpc.base import PARSERS, Parser, Proof, Run, RunStatus, Series
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, number

_HEAD = re.compile(r"transect probe ([a-z\-]{1,40}) (\d{1,6})$")
_SAMPLE = re.compile(rf"sample ([a-z][\w\-]{{0,40}}) (\d{{1,9}}) ({NUMBER})$")
_RESULT = re.compile(
    rf"result ([a-z][\w\-]{{0,40}}) best ({NUMBER}) (\S{{1,12}}) median ({NUMBER}) "
    r"\S{1,12} runs (\d{1,9})$"
)
_VERIFY = re.compile(r"verify (\S{1,40}) (.{1,200}) (passed|FAILED)$")
_FACT = re.compile(r"([a-z_]{2,20}): (.{1,500})$")
_WANTS = (*searched(_SAMPLE, _RESULT, _VERIFY, _FACT), r"(?:end of )?transect probe")
_FORMAT = 1
_AGREE = 1e-4  # samples have nine decimals, results seven digits
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
_PRECISIONS = {"sgemm": "fp32", "dgemm": "fp64"}


@dataclass(slots=True)
class _State:
    line: int
    probe: str = ""
    format: int = _FORMAT
    facts: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, tuple[str, str, str, int]] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    ended: bool = False


def _parse(block: Block, benchmark: str) -> Iterator[Run]:
    state = _State(block.first.number)
    opened = False
    for line in block:
        text = line.text.strip()
        if (match := _HEAD.match(text)) is not None:
            if opened:
                yield _close(block, state, benchmark)
            state, opened = _State(line.number, match[1], int(match[2])), True
        elif not line.cut or text.startswith("end of"):
            _read(state, line, text)
        if state.ended:
            yield _close(block, state, benchmark)
            return
    yield _close(block, state, benchmark)


def _read(state: _State, line: Line, text: str) -> None:
    if (match := _SAMPLE.match(text)) is not None:
        value = number(match[3])
        if value is not None:
            state.samples.setdefault(match[1], []).append(value)
    elif (match := _RESULT.match(text)) is not None:
        state.results[match[1]] = (match[2], match[4], match[3], int(match[5]))
    elif (match := _VERIFY.match(text)) is not None:
        state.verdicts[match[1]] = match[3]
    elif text.startswith("end of transect probe"):
        state.ended = True
    elif (match := _FACT.match(text)) is not None:
        if match[1] == "warning":
            state.warnings.append(excerpt(match[2]))
        else:
            state.facts.setdefault(match[1], match[2])


def _close(block: Block, state: _State, benchmark: str) -> Run:
    draft = Draft(
        block=block,
        benchmark=benchmark,
        line=state.line,
        variant="transect",
        version=str(state.format),
        warnings=state.warnings[:20],
        parameters={
            key: int(value) if re.fullmatch(r"\d{1,18}", value) else value
            for key, value in state.facts.items()
            if key not in ("note", "status")
        },
        samples={k: Series(unit="s", values=v) for k, v in state.samples.items()},
    )
    for label, (best, median, unit, _) in state.results.items():
        kind, _, size = label.rpartition("-")
        registered = _NETWORK[kind][0] if kind in _NETWORK else _REGISTERED.get(unit)
        fits = registered is not None and METRICS[registered].unit == unit
        sized = bool(kind) and size.isdecimal() and len(size) < 10
        phase = kind if sized else label
        for which, printed in (("best", best), ("median", median)):
            draft.reading(
                f"{phase}_{which}",
                printed,
                unit,
                Direction.LOWER if unit == "s" else Direction.HIGHER,
                phase=phase,
                registered=registered if fits else None,
                size=int(size) if sized else None,
                precision=_PRECISIONS.get(phase),
            )
    _judge(draft, state)
    if state.facts.get("beyond_cache") == "no":
        level = state.facts.get("level", "")
        draft.warnings.append(f"this is not the bandwidth of main memory alone: {level}")
    return draft.run()


def _judge(draft: Draft, state: _State) -> None:
    if f"{state.probe}-probe" != draft.benchmark:
        draft.empty(f"this is a log of the probe '{state.probe}'")
    if draft.ok and not state.ended:
        if draft.stop:
            draft.settle(RunStatus.FAILED, draft.stop)
        draft.lacks("no last line of the probe")
    if state.format != _FORMAT:
        draft.refuse(f"format {state.format} of the probe's log is not known, only {_FORMAT}")
    wrong = sorted(label for label, verdict in state.verdicts.items() if verdict != "passed")
    if wrong:
        draft.refuse(f"wrong result: {', '.join(wrong)}")
    said = state.facts.get("status", "missing")
    if said != "ok":
        draft.refuse(f"status: {excerpt(said)}")
    if not state.results or not state.verdicts:
        draft.empty("the log holds no result or no verification")
    draft.refuse_impossible()
    for label in state.results:
        if draft.ok:
            draft.refuse(_recount(state, label))


def _recount(state: _State, label: str) -> str | None:
    """Compare the printed numbers with the samples, by the counting rule of the probe."""
    best, median, unit, runs = state.results[label]
    kind, _, size = label.rpartition("-")
    series = f"{_NETWORK[kind][1]}-{size}" if kind in _NETWORK else label
    samples = state.samples.get(series, [])
    if len(samples) != runs:
        return f"{label}: {runs} runs are stated, {len(samples)} samples are in the log"
    if not samples or min(samples) <= 0:
        return f"{label}: a sample of {min(samples, default=0)} s"
    work = 1.0 if unit == "s" else _work(state, label, unit)
    if work is None:
        return f"{label}: its work is not known"
    if series != label and series not in state.results:
        return f"{label}: it comes from {series}, which is not in the log"
    if kind in _NETWORK and size != "0" and series not in state.verdicts:
        return f"{label}: the log does not say that its results were right"
    for which, printed, seconds in (("best", best, min(samples)), ("median", median, statistics.median(samples))):
        stated = number(printed)
        expected = seconds if unit == "s" else work / seconds
        # A sample is rounded to 1e-9 s, which matters for the shortest ones.
        if stated is None or not math.isclose(stated, expected, rel_tol=_AGREE + 1e-9 / seconds):
            given = f"the samples give {expected:.6e} {unit}"
            return f"{label}: {which} is {printed} {unit}, but {given}"
    return None


def _work(state: _State, label: str, unit: str) -> float | None:
    """Bytes or operations of one run, by the counting rule of the probe."""
    kind, _, size = label.rpartition("-")
    if not re.fullmatch(r"\d{1,9}", size):
        size = ""
    if kind == "bandwidth":
        return float(size) if size else None
    if unit == "B/s":
        array = number(state.facts.get("array_bytes", ""))
        return None if array is None or label not in _PASSES else _PASSES[label] * array
    return 2.0 * int(size) ** 3 if kind and size else None


@PARSERS.register("memory-bandwidth-probe")
class MemoryBandwidthProbe(Parser):
    """Reads logs of `transect.hpc.probes.memory_bandwidth`."""

    benchmark = "memory-bandwidth-probe"
    description = "transect's own probe of memory bandwidth with numpy"
    proof = Proof(
        identity="its first line, which names the probe and the format",
        success="its last line, `status: ok`, passed verifications; every number is recounted from the samples",
        failure="a verification that `FAILED`, another status, a number that the samples do not give",
    )
    starts = (r"transect probe memory-bandwidth \d",)
    wants = _WANTS

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield one run per log of the probe."""
        return _parse(block, self.benchmark)


@PARSERS.register("matrix-multiply-probe")
class MatrixMultiplyProbe(Parser):
    """Reads logs of `transect.hpc.probes.matrix_multiply`."""

    benchmark = "matrix-multiply-probe"
    description = "transect's own probe of matrix multiplication with numpy"
    proof = Proof(
        identity="its first line, which names the probe and the format",
        success="as `memory-bandwidth-probe`",
        failure="as `memory-bandwidth-probe`",
    )
    starts = (r"transect probe matrix-multiply \d",)
    wants = _WANTS

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield one run per log of the probe."""
        return _parse(block, self.benchmark)


@PARSERS.register("network-probe")
class NetworkProbe(Parser):
    """Reads logs of `transect.hpc.probes.network`."""

    benchmark = "network-probe"
    description = "transect's own probe of messages between ranks with mpi4py"
    proof = Proof(
        identity="its first line, which names the probe and the format",
        success="as `memory-bandwidth-probe`",
        failure="as `memory-bandwidth-probe`",
    )
    starts = (r"transect probe network \d",)
    wants = _WANTS

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield one run per log of the probe."""
        return _parse(block, self.benchmark)
