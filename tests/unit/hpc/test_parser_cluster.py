"""perftest, fio, nvbandwidth, gpu-burn, MLPerf Inference and Storage, torchtitan, FSDP's example, sacct and seff."""

from __future__ import annotations

import json

import cluster_logs as logs
import pytest
from log_scan import scan

WHOLE = logs.LOGS

# By log: metric of the registry -> value in its unit.
VALUES = {
    "perftest": {"network_bandwidth": 244.14 * 2**20, "message_rate": 4e6},
    "perftest both ways": {"network_bandwidth": 393.216e9 / 8, "message_rate": 7.5e5},
    "perftest latency": {"message_time": 1.08e-6, "network_latency": 1.08e-6},
    "fio": {"storage_bandwidth": 500 * 2**20},
    "fio json": {"storage_bandwidth": 4_096_000},
    "nvbandwidth": {"link_bandwidth": 50e9},
    "nvbandwidth json": {"link_bandwidth": 50e9},
    "gpu-burn": {"flops": 11020e9},
    "mlperf-inference": {"throughput": 50},
    "mlperf-storage": {"samples_per_second": 100, "storage_bandwidth": 14000 * 2**20},
    "slurm-accounting": {"benchmark_time": 600},
    "slurm-accounting columns": {"benchmark_time": 86410},
    "slurm-accounting seff": {"benchmark_time": 600},
    "dl-training torchtitan": {"tokens_per_second": 950},
    "dl-training fsdp": {"samples_per_second": 14.5},
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_log_gives_its_numbers_in_their_units(name: str) -> None:
    text, amount = WHOLE[name]
    runs = scan(text)
    assert [(run.benchmark, str(run.status), run.reason) for run in runs] == [(name.split()[0], "ok", "")] * amount
    found: dict[str, float] = {}
    for metric in runs[0].metrics:
        if metric.normalised is not None:
            found.setdefault(metric.normalised.name, metric.normalised.value)
    assert found == pytest.approx(VALUES[name])


@pytest.mark.parametrize(
    ("text", "old", "new", "status", "numbers"),
    [
        (logs.PERFTEST, "244.14", "344.14", "invalid", ("344.14", "244.141")),
        # As if a megabyte were 10^6 bytes.
        (logs.PERFTEST, "25000.00\t", "26214.40\t", "invalid", ("26214.40", "25000")),
        (logs.PERFTEST_LATENCY, "1.08 ", "0.08 ", "invalid", ("0.08", "1.02")),
        (logs.FIO, "(524MB/s),", "(424MB/s),", "invalid", ("500MiB/s", "424MB/s")),
        (logs.FIO, "io=50000MiB", "io=60000MiB", "invalid", ("500MiB/s", "600")),
        (logs.FIO, "IOPS=500,", "IOPS=900,", "invalid", ("900", "500MiB/s")),
        (logs.FIO, "err= 0", "err=28", "failed", ("err=28",)),
        (logs.FIO_JSON, '"bw_bytes" : 4096000', '"bw_bytes" : 4000', "invalid", ("4000", "4.096e+06")),
        (logs.FIO_JSON, '"error" : 0', '"error" : 5', "failed", ("error 5",)),
        (logs.NVBANDWIDTH, "ce 50.00", "ce 60.00", "invalid", ("60.00", "50")),
        (logs.NVBANDWIDTH_JSON, '"sum" : 50.0', '"sum" : 49.0', "invalid", ("49.0", "50")),
        (logs.GPU_BURN, "GPU 1: OK", "GPU 1: FAULTY", "invalid", ("GPU 1",)),
        (logs.GPU_BURN, "errors: 0 - 0   temps: 61", "errors: 0 - 7   temps: 61", "invalid", ("0 - 7",)),
        (logs.GPU_BURN, "1000 (11020", "1000 (110200", "invalid", ("110200", "1.1e+04")),
        (logs.INFERENCE, "is : VALID", "is : INVALID", "invalid", ("INVALID",)),
        (logs.INFERENCE, "second: 50.0", "second: 70.0", "invalid", ("70.0000", "50")),
        (logs.STORAGE, 'percentage": 95.5', 'percentage": 90.5', "invalid", ("90.5", "95.5")),
        (logs.STORAGE, '"success"', '"fail"', "invalid", ("95.5",)),
        (logs.SACCT, "T00:10:00|01:20:00\n17.", "T00:11:00|01:20:00\n17.", "invalid", ("00:10:00", "0:11:00")),
        (logs.SACCT, "|01:20:00\n17.", "|01:30:00\n17.", "invalid", ("01:30:00", "4800")),
        (logs.SACCT, "8|COMPLETED", "8|TIMEOUT", "failed", ("TIMEOUT",)),
        (logs.SACCT, "8|COMPLETED", "8|RUNNING", "truncated", ("RUNNING",)),
        (logs.SACCT_COLUMNS, "18                solve", "18                 solve", "no-result", ("heads",)),
        (logs.SEFF, "75.00%", "65.00%", "invalid", ("65.00", "75")),
        (logs.FSDP, "max_steps=3", "max_steps=300", "truncated", ("300",)),
        (logs.TITAN, "total steps 20", "total steps 900", "ok", ()),
    ],
)
def test_what_speaks_against_a_log_is_said_with_both_numbers(
    text: str, old: str, new: str, status: str, numbers: tuple[str, ...]
) -> None:
    assert old in text
    run = scan(text.replace(old, new, 1))[0]
    assert str(run.status) == status, run.reason
    assert all(number in run.reason for number in numbers), run.reason


def test_labels_of_ranks_part_no_training_from_what_its_script_asked_for() -> None:
    script, _, lines = logs.FSDP.partition("\n")
    labelled = script + "\n" + "".join(f"0: {line}\n" for line in lines.splitlines())
    for text, status in ((labelled, "ok"), (labelled.replace("max_steps=3", "max_steps=9"), "truncated")):
        (run,) = scan(text)
        assert (str(run.status), run.parameters["rank"]) == (status, 0)


def test_the_sizes_of_a_torchtitan_training_are_its_settings() -> None:
    parameters = scan(logs.TITAN)[0].parameters
    assert {"local_batch_size": 4, "global_batch_size": 32, "sequence_length": 2048}.items() <= (parameters.items())


def test_thousands_are_parted_by_commas() -> None:
    run = scan(logs.TITAN.replace("tps: 950", "tps: 11,500").replace("tps: 960", "tps: 11,600"))[0]
    assert [metric.printed for metric in run.metrics if metric.name == "tps"] == ["11500", "11600"]


def test_perftest_says_mib_today_for_what_it_called_mb() -> None:
    (run,) = scan(logs.PERFTEST.replace("MB/sec", "MiB/sec"))
    assert run.status == "ok" and run.metrics[1].normalised.value == 244.14 * 2**20


def test_columns_of_perftest_that_are_not_known_shift_no_number() -> None:
    (run,) = scan(logs.PERFTEST.replace("BW average[MB/sec]", "BW average[GB/sec]"))
    assert run.status == "truncated" and not run.metrics


def test_how_often_perftest_did_it_in_given_seconds_is_no_setting() -> None:
    assert scan(logs.PERFTEST)[0].parameters["iterations"] == 5000
    assert "iterations" not in scan(logs.PERFTEST_BOTH)[0].parameters


def test_a_case_of_nvbandwidth_with_another_name_gives_and_takes_no_number() -> None:
    case = "Running {0}.\nsome copy (GB/s)\n           0         1\n 0     {1}     {1}\n\nSUM {0} {2}\n"
    known = case.format("host_to_device_memcpy_ce", "55.50", "111.00")
    unknown = case.format("device_local_copy_new", "99.25", "198.50")
    waived = "Running device_to_host_memcpy_sm.\nWaived: \n"
    runs = scan(f"nvbandwidth Version: v0.10.0\n\n{known}{waived}{unknown}")
    assert [(run.variant, str(run.status), run.metrics[0].printed) for run in runs] == [
        ("host_to_device_memcpy_ce", "ok", "111.00"),
        ("device_local_copy_new", "ok", "198.50"),
    ]
    assert {run.parameters["gpus"] for run in runs} == {2}
    (lost,) = scan(known.replace("SUM host", "SUM host_or"))
    assert lost.status == "truncated" and not lost.metrics


def test_heads_of_sacct_that_are_set_to_the_right_have_their_jobs() -> None:
    table = (
        "       JobID    JobName      State    Elapsed \n"
        "------------ ---------- ---------- ---------- \n"
        "7                 train  COMPLETED   00:10:00 \n"
        "7.batch           batch  COMPLETED   00:10:00 \n"
        "8_[1-3%2]         train    PENDING   00:00:00 \n"
    )
    runs = scan(table)
    assert [(run.parameters["job_id"], str(run.status)) for run in runs] == [("7", "ok"), ("8_[1-3%2]", "truncated")]
    assert runs[0].metrics[0].normalised.value == 600


def test_both_ways_are_one_variant_and_one_way_another() -> None:
    variants = [scan(text)[0].variant for text in (logs.PERFTEST, logs.PERFTEST_BOTH)]
    assert variants == ["rdma_write bw", "send bidirectional bw"]


def test_a_read_is_timed_there_and_back_and_is_no_half_of_a_round_trip() -> None:
    run = scan(logs.PERFTEST_LATENCY.replace("RDMA_Write", "RDMA_Read"))[0]
    assert str(run.status) == "ok" and all(metric.normalised is None for metric in run.metrics)


def test_a_copy_within_a_device_and_a_latency_are_no_bandwidth_of_a_link() -> None:
    copy = logs.NVBANDWIDTH.replace("host_to_device_memcpy_ce", "device_local_copy")
    time = logs.NVBANDWIDTH.replace("bandwidth (GB/s)", "latency (ns)")
    for text, unit in ((copy, "GB/s"), (time, "ns")):
        (metric,) = scan(text)[0].metrics
        assert (metric.unit, metric.normalised) == (unit, None)


def test_what_tensor_cores_compute_is_no_rate_of_fp32() -> None:
    run = scan(logs.GPU_BURN.replace("using FLOATS", "using FLOATS, using Tensor Cores"))[0]
    assert str(run.status) == "ok" and all(metric.normalised is None for metric in run.metrics)


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash\n#SBATCH -N 2\nsrun ib_write_bw -a server\nfio --name=x --rw=write\n",
        "sacct -j 17 --format=JobID,State,Elapsed\nJob ID: 17\nState: running well\n",
        "JobID is a number, and State tells how the job stands\n",
        '{\n  "num_accelerators": 8,\n  "workload": "unet3d"\n}\n',
        "step: 10  loss: 0.5\nstep: 20  loss: 0.4\n",
        'printf(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]");\n',
        "fio-2.1.10\nREAD: io=1024.0MB, aggrb=56946KB/s, minb=58313KB/s, maxb=58313KB/s, mint=10481msec\n",
        "GPU 0: NVIDIA X1 (UUID: GPU-0)\nGPU 1: NVIDIA X1 (UUID: GPU-1)\n",
    ],
)
def test_what_only_mentions_them_is_nobodys(text: str) -> None:
    assert [run.benchmark for run in scan(text) if str(run.status) != "failed"] in (["unknown"], [])


def superbench(node: str, extra: int = 0, **changes: object) -> str:
    numbers: dict[str, object] = {
        "gemm-flops/return_code:0": 0,
        "gemm-flops/fp64_flops:0": 9000.5,
        "gemm-flops/fp16_tc_flops:0": 250000.5,
        "nccl-bw:nvlink/return_code:0": 0,
        "nccl-bw:nvlink/allreduce_1048576_busbw:0": 120.25,
        "model-benchmarks:gpt/pytorch-gpt2/return_code:0": 0,
        "model-benchmarks:gpt/pytorch-gpt2/fp16_train_throughput:0": 80.5,
        "ib-traffic/return_code": 0,
        "ib-traffic/odd_number": 3.5,
        **{f"ib-traffic/filler_{n}:{n}": n for n in range(extra)},
        **changes,
        "node": node,
    }
    return json.dumps(numbers) + "\n"


def test_a_line_of_superbench_is_a_run_of_each_benchmark_of_a_node() -> None:
    runs = scan(superbench("n1") + superbench("n2", extra=3000))
    assert [run.parameters["host"] for run in runs] == ["n1"] * 4 + ["n2"] * 4
    assert {str(run.status) for run in runs} == {"ok"}
    assert [run.variant for run in runs[4:]] == [
        "gemm-flops",
        "nccl-bw:nvlink",
        "model-benchmarks:gpt/pytorch-gpt2",
        "ib-traffic",
    ]
    found = {
        metric.normalised.name: (metric.normalised.value, metric.printed)
        for run in runs[4:]
        for metric in run.metrics
        if metric.normalised is not None
    }
    assert found == {
        "flops": (9000.5e9, "9000.5"),
        "collective_bandwidth": (120.25e9, "120.25"),
        "samples_per_second": (80.5, "80.5"),
    }
    assert len(runs[-1].metrics) == 3001 and runs[-1].metrics[0].unit == ""


def test_a_benchmark_of_superbench_that_failed_says_so_and_the_others_stand() -> None:
    text = superbench("n1", **{"gemm-flops/return_code:0": 4})
    first, *others = scan(text)
    assert str(first.status) == "failed" and "return code 4" in first.reason
    assert {str(run.status) for run in others} == {"ok"}
    assert [str(run.status) for run in scan(text[:200])] == ["truncated"]
    assert [run.benchmark for run in scan('{"a/b": 1, "node": "x"}\n')] == ["unknown"]


def test_a_device_is_a_run_and_its_best_block_the_result() -> None:
    first, second = scan(logs.SUPERBENCH)
    assert [run.benchmark for run in (first, second)] == ["stream", "stream"]
    triad = second.metric("triad")
    assert triad is not None and (triad.printed, triad.unit) == ("7220.00", "GB/s")
    assert triad.normalised is not None and triad.normalised.value == 7.22e12
    assert (second.parameters["gpu"], second.parameters["triad_block"]) == (1, 256)
    assert first.samples["copy"].values == [6000.0, 6020.0]
    assert first.suspicions == [] and first.parameters["device"] == "G 100"


def test_sums_that_were_not_checked_are_said() -> None:
    run = scan(logs.SUPERBENCH.replace("Check data: Yes", "Check data: No"))[0]
    assert run.status == "ok" and "not checked" in run.suspicions[0]
