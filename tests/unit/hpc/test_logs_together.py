"""Several benchmarks in one file, and text that is of none."""

from __future__ import annotations

import pytest
from cluster_logs import INFERENCE
from hpc_logs import HPCC, HPL, MATRIX, MEMORY, STREAM
from learning_logs import DLL, FAIRSEQ, HOROVOD, ORT, TF, mlperf
from log_scan import scan
from network_logs import GRAPH500, IMB, NCCL, NPB, OSU_BW, OSU_LATENCY

from transect.hpc.parsers._dl_training import hours, rate_of


def benchmarks(text: str) -> list[str]:
    runs = scan(text)
    assert {run.status for run in runs} == {"ok"}
    assert [run.line for run in runs] == sorted({run.line for run in runs})
    return [run.benchmark for run in runs]


def test_several_runs_of_several_benchmarks_keep_their_order() -> None:
    text = HPL + STREAM + "Done\n" + MEMORY + HPCC + HPL + HPL + STREAM + STREAM + HPCC + MATRIX
    assert benchmarks(text) == [
        "hpl",
        "stream",
        "memory-bandwidth-probe",
        "hpcc",
        "hpl",
        "hpl",
        "stream",
        "stream",
        "hpcc",
        "matrix-multiply-probe",
    ]
    assert benchmarks(NPB + OSU_BW + GRAPH500 + IMB + NCCL + OSU_LATENCY) == [
        "npb",
        "osu",
        "graph500",
        "imb",
        "imb",
        "imb",
        "nccl-tests",
        "osu",
    ]
    assert benchmarks(TF + HOROVOD + ORT + DLL + mlperf() + ORT + FAIRSEQ + HOROVOD) == [
        "tf-cnn-benchmarks",
        "horovod",
        "onnxruntime-perf-test",
        "dl-training",
        "mlperf-training",
        "onnxruntime-perf-test",
        "dl-training",
        "horovod",
    ]


SWEEP = "# OSU-format message sweep (transect, mpi4py) Bandwidth Test"


@pytest.mark.parametrize(("head", "whole"), [("MLPerf Results Summary", INFERENCE), (MEMORY.split("\n")[0], MEMORY)])
def test_a_start_that_printed_no_more_than_its_head_is_told(head: str, whole: str) -> None:
    runs = scan(f"{head}\n{head}\n{whole}{head}")
    assert [str(run.status) for run in runs] == ["truncated", "truncated", "ok", "truncated"]


def test_a_head_that_is_the_end_of_its_log_tells_what_it_begins() -> None:
    assert [(run.variant, run.parameters) for run in scan(SWEEP)] == [("mpi4py", {"test": "Bandwidth"})]


def test_other_text_is_not_taken() -> None:
    for text in (
        "access,bw(MiB/s),Latency(ms),block(KiB),xfer(KiB),iter\nwrite,167.46,1.5,1048576,1048576,10\n",
        '{\n  "Version": "3.3.0",\n  "name": "x"\n}\n',
        "[RESULT] all tests passed\n[SCORE] 12\n",
        "[RESULT-INVALID] base: read result.csv failed\n",
        "[global]\ndatadir = /fs\n[ior-easy-write]\nAPI = POSIX\n",
        "Max Write: 12.24W\nMax write: 3.00 MB/s\nSUMMARY: 3 of 4\n",
    ):
        assert [run.benchmark for run in scan(text)] == ["unknown"], text


def test_no_words_or_unlabelled_rates_count_as_samples() -> None:
    assert rate_of("train_throughput", "") == ("1/s", None)
    assert rate_of("throughput", "tokens/s") == ("tokens/s", None)
    assert rate_of("train.compute_ips", "") == ("1/s", "samples_per_second")
    assert rate_of("loss", "") is None
    assert hours("1 day, 2:00:00.50") == 93600.5 and hours("1:00") is None
