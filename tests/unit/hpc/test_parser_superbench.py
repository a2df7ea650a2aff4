"""SuperBench's table of STREAM on GPUs."""

from __future__ import annotations

import pytest
from cluster_logs import SUPERBENCH as LOG
from cluster_logs import SUPERBENCH_HEAD as HEAD
from cluster_logs import superbench as table
from log_scan import scan


def test_a_device_is_a_run_and_its_best_block_the_result() -> None:
    first, second = scan(LOG)
    assert [run.benchmark for run in (first, second)] == ["stream", "stream"]
    triad = second.metric("triad")
    assert triad is not None and (triad.printed, triad.unit) == ("7220.00", "GB/s")
    assert triad.normalised is not None and triad.normalised.value == 7.22e12
    assert (second.parameters["gpu"], second.parameters["triad_block"]) == (1, 256)
    assert first.samples["copy"].values == [6000.0, 6020.0]
    assert first.suspicions == [] and first.parameters["device"] == "G 100"


def test_sums_that_were_not_checked_are_said() -> None:
    run = scan(LOG.replace("Check data: Yes", "Check data: No"))[0]
    assert run.status == "ok" and "not checked" in run.suspicions[0]


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        (LOG[: LOG.index("STREAM_ADD_double_gpu_0")], "truncated", "no add, triad"),
        (LOG[: LOG.index("STREAM_ADD_double_gpu_0")] + "CUDA error: out of memory\n", "failed", "out of memory"),
        (HEAD, "truncated", "before the first result"),
        (LOG.replace("6000.00\t75.00", "6000.00\t95.00"), "invalid", "95.00 %"),
        (LOG.replace("6000.00\t75.00", "nan\t75.00"), "invalid", "nan"),
        (HEAD + table(0) + "Check data failed on gpu 0\n", "invalid", "the log says"),
    ],
)
def test_status_and_reason(text: str, status: str, why: str) -> None:
    run = scan(text)[0]
    assert (run.status, why in run.reason) == (status, True), run.reason
