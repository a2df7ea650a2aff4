"""SuperBench's table of STREAM on GPUs."""

from __future__ import annotations

import re

import pytest
from log_scan import scan

HEAD = """\
STREAM Benchmark
Buffer size(bytes): 4294967296
Number of warm up runs: 10
Number of loops: 40
Check data: Yes

"""


def table(gpu: int) -> str:
    text = f'Device {gpu}: "G 100"  8 SMs(10.0)  Memory: 4000MHz x 8192-bit = 8000 GB/s PEAK   ECC is ON\n'
    for kernel, rate in (("COPY", 6000.0), ("SCALE", 6100.0), ("ADD", 7000.0), ("TRIAD", 7100.0)):
        for place, block in enumerate((128, 256)):
            value = rate + 100 * gpu + 20 * place
            text += f"STREAM_{kernel}_double_gpu_{gpu}_buffer_4294967296_block_{block}\t{value:.2f}\t{value / 80:.2f}\n"
    return text + "\n"


LOG = HEAD + table(0) + table(1)


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


def test_no_cut_makes_a_wrong_number() -> None:
    whole = {(run.parameters["gpu"], m.name): m.value for run in scan(LOG) for m in run.metrics}
    rates = {float(one) for one in re.findall(r"\t(\d+\.\d\d)\t", LOG)}
    assert len(whole) == 8
    for end in range(0, len(LOG), 7):
        for run in scan(LOG[:end]):
            assert {m.value for m in run.metrics} <= rates
            if run.status == "ok":
                assert all(whole[run.parameters["gpu"], m.name] == m.value for m in run.metrics)
