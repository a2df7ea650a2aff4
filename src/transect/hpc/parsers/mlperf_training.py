"""MLPerf Training, versions 0.5 to today, and MLPerf HPC: the lines `:::MLPv0.5.0`, `:::MLPv0.6.0`, `:::MLL`, `:::MLLOG`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.parsers._mlperf_events import STARTS, WANTS
from transect.hpc.parsers._mlperf_runs import HPC_BENCHMARKS, runs_of
from transect.hpc.text import Line

_NAMED = re.compile(
    rf'"submission_benchmark",[ ]?"value":[ ]?"(?:{"|".join(sorted(HPC_BENCHMARKS))})"'
    r'|"key":[ ]?"staging_st(?:art|op)"'
)


@PARSERS.register("mlperf-training")
class MlperfTraining(Parser):
    """Reads time to train and evaluations. Runs of an HPC benchmark are yielded as `mlperf-hpc`.

    Both suites log the same lines, and the benchmark's name may come many lines after the first.
    """

    benchmark = "mlperf-training"
    description = "MLPerf Training 0.5 to 5.x: time to train, quality, throughput"
    validity_notes = Proof(
        identity="a line `:::MLLOG`, `:::MLL` or `:::MLPv0.…`",
        success="`run_start` and `run_stop` with success; the last evaluation in time reaches the logged target",
        failure="a target that is missed by more than a rounding, no time between start and stop, a script that took less; another status is `failed`",
    )
    start_patterns = STARTS
    line_patterns = WANTS
    merge_hosts = True
    nested = frozenset(("mlperf-hpc", "dl-training"))

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per run_start."""
        yield from runs_of(block, self.benchmark)


@PARSERS.register("mlperf-hpc")
class MlperfHpc(MlperfTraining):
    """Reads time to train, staging time and evaluations."""

    benchmark = "mlperf-hpc"
    description = "MLPerf HPC 0.7 to 3.0: CosmoFlow, DeepCAM, Open Catalyst, OpenFold"
    validity_notes = Proof(
        identity="a line `:::MLLOG`, `:::MLL` or `:::MLPv0.…`, of which the first names one of its benchmarks or staging; else as `mlperf-training` until the name comes",
        success="as `mlperf-training`",
        failure="as `mlperf-training`",
    )
    nested = frozenset(("mlperf-training", "dl-training"))

    def matches(self, line: Line) -> bool:
        """Take logs whose first line names one of its benchmarks; `mlperf-training` the rest."""
        return _NAMED.search(line.text) is not None
