"""SuperBench's results-summary.jsonl: a line for each node, all that its benchmarks gave under `BENCHMARK/METRIC:RANK`.

The file tells no unit: those are of SuperBench's documentation (micro-benchmarks.md, model-benchmarks.md). What it
gives none for is kept without.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.text import Line, excerpt

_KEY = re.compile(r"([A-Za-z][\w\-:./]{1,200})/([^/\s]{1,200}?)(?::(\d{1,6}))?")
_CODE = "return_code"
# Benchmark, metric -> unit, metric of the registry.
_UNITS: tuple[tuple[re.Pattern[str], str, str | None], ...] = tuple(
    (re.compile(pattern), unit, registered)
    for pattern, unit, registered in (
        (r"kernel-launch(?::[\w\-]+)?/(?:event|wall)_time", "ms", None),
        (r"kernel-launch(?::[\w\-]+)?/\w+_us", "us", None),
        (r"gemm-flops(?::[\w\-]+)?/fp(?:64|32)_flops", "GFLOP/s", "flops"),
        # Tensor cores and short types: no rate of fp64 or fp32.
        (r"gemm-flops(?::[\w\-]+)?/\w+_flops", "GFLOP/s", None),
        (r"(?:cublaslt|hipblaslt)-gemm(?::[\w\-]+)?/\w+_flops", "TFLOP/s", None),
        (r"cpu-stream(?::[\w\-]+)?/\w+_throughput", "MB/s", "memory_bandwidth"),
        (r"mem-bw(?::[\w\-]+)?/(?:h2d|d2h)_bw", "GB/s", "link_bandwidth"),
        (r"(?:nccl|rccl)-bw(?::[\w\-]+)?/\w+_\d+_time", "us", "collective_time"),
        (r"(?:nccl|rccl)-bw(?::[\w\-]+)?/\w+_\d+_busbw", "GB/s", "collective_bandwidth"),
        (r"(?:nccl|rccl)-bw(?::[\w\-]+)?/\w+_\d+_algbw", "GB/s", None),
        (r"model-benchmarks[\w\-:./]*/\w+_train_step_time", "ms", None),
        (r"model-benchmarks[\w\-:./]*/\w+_train_throughput", "1/s", "samples_per_second"),
        (r"model-benchmarks[\w\-:./]*/\w+_inference_throughput", "1/s", "throughput"),
    )
)


@PARSERS.register("superbench-results")
class SuperBenchResults(Parser):
    """Reads a run per node and benchmark."""

    benchmark = "superbench-results"
    description = "SuperBench: results-summary.jsonl, what all its benchmarks gave on each node"
    validity_notes = Proof(
        identity="a JSON object in one line whose first key is `BENCHMARK/METRIC`, with a `return_code`",
        success="the return code 0",
        failure="another return code (`failed`), a number that is none",
    )
    start_patterns = (r'\{(?:"node": ?"[^"\n]{0,200}", ?)?"[A-Za-z][\w\-:.]{1,100}/[^"\n]{1,300}": ?[-\d"]',)
    line_patterns = start_patterns

    def matches(self, line: Line) -> bool:
        """Tell its objects from others by a key that each benchmark has."""
        return f"/{_CODE}" in line.text

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield the runs of each node."""
        for line in block:
            text = block.whole_line() if not line.cut or line.text.endswith("}") else ""
            try:
                results = json.loads(text, parse_float=str, parse_int=str)
            except ValueError:
                draft = Draft(block=block, line=line.number)
                draft.mark_incomplete("its line of JSON is not whole")
                yield draft.run()
                continue
            drafts: dict[str, Draft] = {}
            for key, printed in results.items():
                if (match := _KEY.fullmatch(key)) is not None:
                    draft = drafts.setdefault(match[1], Draft(block=block, line=line.number, variant=match[1]))
                    _take(draft, match, str(printed))
            for draft in drafts.values():
                draft.parameters["host"] = excerpt(str(results.get("node", "")))
                yield _run(draft)


def _take(draft: Draft, match: re.Match[str], printed: str) -> None:
    name, rank = match[2], match[3]
    if name == _CODE:
        if printed != "0":
            draft.stops.append(f"return code {printed}" + (f" of rank {rank}" if rank else ""))
        draft.parameters[_CODE] = printed
        return
    known = next((row for row in _UNITS if row[0].fullmatch(f"{match[1]}/{name}")), None)
    unit, registered = known[1:] if known is not None else ("", None)
    direction = Direction.NEUTRAL
    if unit:
        direction = Direction.LOWER if unit in ("us", "ms") else Direction.HIGHER
    precision = name[:4] if registered == "flops" else None
    metric = draft.add_metric(
        name,
        printed,
        unit,
        direction,
        registered=registered,
        precision=precision,
        phase=f"rank {rank}" if rank else None,
    )
    if metric is None:
        draft.mark_invalid(f"{excerpt(name)} is {excerpt(printed)}, which is no number")


def _run(draft: Draft) -> Run:
    if draft.stops:
        draft.mark_incomplete("it failed")
    draft.mark_impossible()
    if _CODE not in draft.parameters and draft.ok:
        draft.suspicions.append("its return code is missing")
    if not draft.metrics:
        draft.mark_no_result("it gave no number")
    draft.parameters.pop(_CODE, None)
    return draft.run()
