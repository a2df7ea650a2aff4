"""MLPerf Training, versions 0.5 to today: the lines `:::MLPv0.5.0`, `:::MLPv0.6.0`, `:::MLL`, `:::MLLOG`."""

from __future__ import annotations

from collections.abc import Iterator

from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.parsers._mlperf_events import STARTS, WANTS
from transect.hpc.parsers._mlperf_runs import runs_of


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
