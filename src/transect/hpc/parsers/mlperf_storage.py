"""MLPerf Storage: `summary.json` of DLIO, how well storage feeds simulated accelerators.

`train_io_mean_MB_per_second` counts 2^20 bytes, whatever its name says (DLIO's statscounter.py divides by 1024 twice). Means
are recomputed from the epochs that they are of.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from transect.hpc.base import PARSERS, Parser, Proof, Run, Series
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import disagree
from transect.hpc.parsers._json_block import read_object


@PARSERS.register("mlperf-storage")
class MlperfStorage(Parser):
    """Reads the metrics of a training that was simulated."""

    benchmark = "mlperf-storage"
    description = "MLPerf Storage: DLIO's summary.json of a simulated training"
    validity_notes = Proof(
        identity="the key `train_au_percentage`, with which the metrics of its JSON begin",
        success="`train_au_meet_expectation` says success, or nothing",
        failure="the accelerators were used less than expected; a mean that its epochs refute",
    )
    start_patterns = (r'"train_au_percentage": ?\[',)
    line_patterns = None

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield one run."""
        draft = Draft(block=block, line=block.first.number)
        summary = read_object(block)
        if summary is None:
            draft.mark_incomplete("its JSON is not whole")
            yield draft.run()
            return
        _mean(draft, summary, "train_au_percentage", "train_au_mean_percentage", "%", None)
        _mean(
            draft,
            summary,
            "train_throughput_samples_per_second",
            "train_throughput_mean_samples_per_second",
            "1/s",
            "samples_per_second",
        )
        rate = summary.get("train_io_mean_MB_per_second")
        if isinstance(rate, (int, float)):
            draft.add_metric("io", repr(rate), "MiB/s", registered="storage_bandwidth")
        verdict = summary.get("train_au_meet_expectation")
        if verdict not in (None, "", "success"):
            used = summary.get("train_au_mean_percentage", "?")
            draft.mark_invalid(f"the accelerators were used less than expected ({used} %): {verdict}")
        draft.mark_impossible()
        if not draft.metrics:
            draft.mark_no_result("no number of its training")
        yield draft.run()


def _mean(draft: Draft, summary: dict[str, Any], series: str, mean: str, unit: str, registered: str | None) -> None:
    values = [value for value in summary.get(series) or () if isinstance(value, (int, float))]
    if values:
        draft.samples[series] = Series(unit=unit, values=[float(value) for value in values])
    printed = summary.get(mean)
    if isinstance(printed, (int, float)):
        draft.add_metric(mean, repr(printed), unit, registered=registered)
        if values:
            draft.mark_invalid(disagree(mean, repr(printed), fmean(values), 1e-3, unit))
