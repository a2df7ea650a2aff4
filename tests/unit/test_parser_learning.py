"""MLPerf, tf_cnn_benchmarks, Horovod, training logs, onnxruntime_perf_test: logs written here."""

from __future__ import annotations

import io
import json
import random
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.hpc.base import Run
from transect.hpc.parsers._dl_state import hours, rate_of
from transect.hpc.scan import Scanner

SCANNER = Scanner()


def scan(text: str | bytes, scanner: Scanner = SCANNER) -> list[Run]:
    raw = text.encode() if isinstance(text, str) else text
    runs = list(scanner.scan(io.BytesIO(raw), "log"))
    assert runs, "nothing may be lost"
    for run in runs:
        assert "fault of the parser" not in run.reason, run.reason
        assert bool(run.reason) == (run.status != "ok")
    return runs


def one(text: str) -> Run:
    (run,) = scan(text)
    return run


def printed(run: Run, name: str, phase: str | None = None) -> str:
    found = run.metric(name, phase)
    assert found is not None, (name, [(m.name, m.phase) for m in run.metrics])
    return found.printed


def normalised(run: Run) -> dict[str, float]:
    return {m.normalised.name: m.normalised.value for m in run.metrics if m.normalised}


# ---- MLPerf ------------------------------------------------------------------------------------


def mllog(key: str, ms: int, value: object = None, **metadata: object) -> str:
    kind = "INTERVAL_START" if key.endswith("start") else "POINT_IN_TIME"
    record = {
        "namespace": "", "time_ms": ms, "event_type": kind, "key": key, "value": value,
        "metadata": {"file": "train.py", "lineno": 7, **metadata},
    }  # fmt: skip
    return ":::MLLOG " + json.dumps(record) + "\n"


T0 = 1_700_000_000_000


def mlperf(name: str = "resnet", key: str = "eval_accuracy", values=(0.5, 0.7601), status="success",
           start: int = T0) -> str:  # fmt: skip
    text = mllog("cache_clear", start - 9000, True) + mllog("init_start", start - 8000)
    text += mllog("submission_benchmark", start - 7000, name) + mllog("seed", start - 6900, 42)
    text += mllog("global_batch_size", start - 6800, 256)
    text += mllog("opt_learning_rate_decay_boundary_epochs", start - 6700, [16, 32])
    text += mllog("init_stop", start - 10) + mllog("run_start", start)
    for i, value in enumerate(values):
        at = start + 1000 * (i + 1)
        text += mllog("epoch_start", at - 900, epoch_num=i + 1)
        text += mllog("throughput", at - 100, 2500.5 + i)
        text += mllog("eval_start", at - 90, epoch_num=i + 1)
        text += mllog(key, at, value, epoch_num=i + 1)
        text += mllog("eval_stop", at + 1, epoch_num=i + 1)
    stop = {"status": status} if status else {}
    return text + mllog("run_stop", start + 5123, **stop)


OLD = "".join(
    f":::MLPv0.5.0 transformer 15416327{at}.5 (train.py:{i}) {tag}\n"
    for i, (at, tag) in enumerate(
        [
            (60, "run_clear_caches"), (71, "run_start"), (72, 'opt_name: "adam"'),
            (72, "run_set_random_seed: 11"), (72, "opt_learning_rate: [0.0006]"),
            (80, 'eval_accuracy: {"epoch": 0, "value": 21.5}'), (80, "eval_target: 25.0"),
            (90, 'eval_accuracy: {"epoch": 1, "value": 25.25}'), (91, "run_stop"), (92, "run_final"),
        ]
    )
)  # fmt: skip


def test_mlperf_time_to_train_is_stop_minus_start_in_the_digits_of_the_log() -> None:
    run = one(mlperf())
    assert (run.benchmark, run.variant, run.status, run.line) == (
        "mlperf-training", "resnet", "ok", 1,
    )  # fmt: skip
    assert printed(run, "time_to_train") == "5.123" and printed(run, "eval_accuracy") == "0.7601"
    assert normalised(run) == {"time_to_quality": 5.123, "accuracy": 0.7601}
    assert run.parameters["evaluations"] == 2 and run.parameters["global_batch_size"] == 256
    assert run.parameters["opt_learning_rate_decay_boundary_epochs"] == [16, 32]
    assert run.samples["eval_accuracy"].values == [0.5, 0.7601]
    assert run.samples["throughput"].values == [2500.5, 2501.5]


@pytest.mark.parametrize(
    ("name", "key", "benchmark", "direction"),
    [
        ("resnet", "eval_accuracy", "mlperf-training", "higher"),
        ("rnnt", "eval_accuracy", "mlperf-training", "lower"),  # a word error rate
        ("llama2_70b_lora", "eval_accuracy", "mlperf-training", "lower"),  # a loss
        ("cosmoflow", "eval_error", "mlperf-hpc", "lower"),
        ("deepcam", "eval_accuracy", "mlperf-hpc", "higher"),
        ("oc20", "eval_error", "mlperf-hpc", "lower"),
        ("openfold", "eval_accuracy", "mlperf-hpc", "higher"),
    ],
)
def test_mlperf_benchmark_and_direction_of_its_quality(
    name: str, key: str, benchmark: str, direction: str
) -> None:
    run = one(mlperf(name, key, (0.9, 0.01)))
    found = run.metric(key)
    assert (run.benchmark, run.status) == (benchmark, "ok")
    assert found is not None and found.direction == direction


def test_mlperf_of_version_0_5_states_no_status() -> None:
    run = one(OLD)
    assert (run.variant, run.version, run.status) == ("transformer", "0.5.0", "ok")
    assert float(printed(run, "time_to_train")) == 20.0
    assert printed(run, "eval_accuracy") == "25.25" and run.parameters["evaluations"] == 2
    assert run.parameters["opt_name"] == "adam" and run.parameters["run_set_random_seed"] == 11
    assert any("no status" in warning for warning in run.warnings)


def test_mlperf_lines_behind_loggers_and_doubled_by_them() -> None:
    doubled = "".join(
        f"{line}\nI0122 12:00:14.874658 140303790921536 mlperf_log.py:136] NCF_RAW_{line}\n"
        for line in OLD.splitlines()
    )
    for text in (doubled, doubled.replace("I0122", "\x1b[1mI0122"), OLD.replace(":::", "x0: :::")):
        run = one(text)
        assert run.parameters["evaluations"] == 2 and run.status == "ok"


def test_mlperf_0_6_and_a_deferred_value() -> None:
    text = OLD.replace("v0.5.0", "v0.6.0").replace("run_stop", 'run_stop: {"status": "success"}')
    run = one(text)
    assert (run.version, run.parameters["run_status"]) == ("0.6.0", "success")
    uuid = "1df9b2ab-3dc8-478b-8682-ce574b800024"
    late = text.replace('{"epoch": 1, "value": 25.25}', f'"DEFERRED: {uuid}"')
    late = late.replace("eval_target: 25.0\n", "x: 1\n")
    assert one(late).status == "invalid"
    settled = late + f":::MLPv0.5.0 [{uuid}][1541632790.1][25.5]\n"
    assert printed(one(settled), "eval_accuracy") == "25.5"


def test_mlperf_ranks_repeat_lines_and_make_one_run() -> None:
    lines = mlperf().splitlines(keepends=True)
    apart = "".join(line * 8 for line in lines)
    labelled = "".join(f"{rank}: {line}" for line in lines for rank in range(8))
    for text in (apart, labelled, "".join(f"[1,{i % 4}]<stdout>:{x}" for i, x in enumerate(lines))):
        run = one(text)
        assert run.parameters["evaluations"] == 2 and run.status == "ok"


def test_mlperf_several_runs_in_one_file() -> None:
    text = mlperf() + mlperf(start=T0 + 100_000, status="aborted") + mlperf("bert") + OLD + mlperf()
    runs = scan(text)
    assert [r.variant for r in runs] == ["resnet", "resnet", "bert", "transformer", "resnet"]
    assert [r.status for r in runs] == ["ok", "failed", "ok", "ok", "ok"]
    assert [r.line for r in runs] == sorted({r.line for r in runs})
    restarted = mlperf()[: mlperf().index("run_stop") - 200] + mlperf(start=T0 + 900_000)
    assert [r.status for r in scan(restarted)] == ["truncated", "ok"]


def test_mlperf_several_qualities_of_one_evaluation() -> None:
    run = one(mlperf("maskrcnn", values=({"BBOX": 0.1, "SEGM": 0.1}, {"BBOX": 0.38, "SEGM": 0.34})))
    assert printed(run, "eval_accuracy", "BBOX") == "0.38"
    assert run.samples["eval_accuracy SEGM"].values == [0.1, 0.34]


def test_mlperf_epoch_num_that_counts_samples() -> None:
    text = mlperf("openfold", values=(0.81,)).replace('"epoch_num": 1', '"epoch_num": 107520')
    run = one(text)
    assert run.parameters["last_epoch_num"] == "107520"
    assert run.parameters["epoch_num_counts"] == "samples"
    assert one(mlperf()).parameters["epoch_num_counts"] == "epochs"


def test_mlperf_evaluation_after_run_stop() -> None:
    late = mlperf() + mllog("eval_accuracy", T0 + 9000, 0.99, epoch_num=3)
    run = one(late)
    assert printed(run, "eval_accuracy") == "0.7601" and run.parameters["evaluations"] == 3
    out_of_order = mlperf() + mllog("eval_accuracy", T0 + 5000, 0.77, epoch_num=3)
    assert printed(one(out_of_order), "eval_accuracy") == "0.77"
    only = mlperf(values=()) + mllog("eval_accuracy", T0 + 9000, 0.77, epoch_num=3)
    assert any("after run_stop" in warning for warning in one(only).warnings)


def test_mlperf_hpc_staging() -> None:
    staged = mlperf("cosmoflow", "eval_error", (0.3, 0.12)).replace(
        mllog("run_start", T0),
        mllog("run_start", T0) + mllog("staging_start", T0 + 5) + mllog("staging_stop", T0 + 505),
    )
    run = one(staged)
    assert printed(run, "staging_time") == "0.500" and printed(run, "time_to_train") == "5.123"


MLPERF_CASES = [
    (lambda t: t.replace('"success"', '"aborted"'), "failed", "'aborted'"),
    (lambda t: t[: t.index('"run_stop"') - 100], "truncated", "without run_stop"),
    (
        lambda t: t[: t.index('"run_stop"') - 100] + "\nsrun: error: n1: task 0: Killed\n",
        "failed",
        "Killed",
    ),
    (
        lambda t: t[: t.index('"run_stop"') - 100] + "\nRuntimeError: CUDA out of memory.\n",
        "failed",
        "CUDA out of memory",
    ),
    (lambda t: t[: t.index('"init_stop"') - 100], "truncated", "before run_start"),
    (lambda t: t[t.index('{"namespace"', 2600) :].replace("run_start", "x"), "truncated", "head"),
    (lambda t: re.sub(r'(?m)("time_ms": )\d+(.*run_stop)', r"\g<1>0\2", t), "invalid", "is 0"),
    (lambda t: re.sub(r'(?m)("time_ms": )\d+(.*run_stop)', r"\g<1>5\2", t), "invalid", "outside"),
    (lambda t: t.replace("0.7601", "NaN"), "invalid", "NaN"),
    (lambda t: t.replace("0.7601", "-0.7"), "invalid", "negative"),
    (lambda t: t.replace("0.7601", "null") + "x\n", "ok", ""),
    (lambda t: t + "RESULT,IMAGE,,6,someone,2026-01-01\n", "ok", ""),
    (lambda t: t + "RESULT,IMAGE,,1,someone,2026-01-01\n", "invalid", "took 1 s"),
    (lambda t: "srun: error: n1: task 0: Killed\n" + t + "Done\n", "ok", ""),
    (lambda t: t + mllog("eval_target", T0 + 9, 0.9), "invalid", "misses the target 0.9"),
]


@pytest.mark.parametrize(("change", "status", "reason"), MLPERF_CASES)
def test_mlperf_status(change: Callable[[str], str], status: str, reason: str) -> None:
    runs = scan(change(mlperf()))
    assert runs[-1].status == status, runs[-1].reason
    assert reason in runs[-1].reason


def test_mlperf_broken_lines_are_counted() -> None:
    text = mlperf() + ':::MLLOG {"key": "epoch_stop", "time_ms": 17\n:::MLLOG [\n:::MLLOG {]\n'
    assert any("cut or broken" in warning for warning in one(text).warnings)


# ---- tf_cnn_benchmarks ------------------------------------------------------------------------

TF = """\
TensorFlow:  2.4
Model:       resnet50
Dataset:     imagenet (synthetic)
Mode:        training
SingleSess:  False
Batch size:  128 global
             64 per device
Num batches: 20
Num epochs:  0.01
Devices:     ['/gpu:0', '/gpu:1']
Data format: NCHW
Optimizer:   sgd
Variables:   replicated
==========
Generating training model
Running warm up
INFO:tensorflow:global_step/sec: 0
Done warm up
Step\tImg/sec\ttotal_loss
1\timages/sec: 600.1 +/- 0.0 (jitter = 0.0)\t7.900
10\timages/sec: 601.2 +/- 1.5 (jitter = 2.5)\t7.800
20\timages/sec: 602.3 +/- 1.1 (jitter = 3.5)\t7.700
----------------------------------------------------------------
total images/sec: 601.95
----------------------------------------------------------------
"""


def test_tf_cnn_total_steps_and_columns() -> None:
    run = one(TF)
    assert (run.benchmark, run.variant, run.version, run.status) == (
        "tf-cnn-benchmarks", "training", "2.4", "ok",
    )  # fmt: skip
    assert printed(run, "total") == "601.95" and normalised(run) == {"samples_per_second": 601.95}
    assert (printed(run, "jitter"), printed(run, "uncertainty")) == ("3.5", "1.1")
    assert run.parameters["devices"] == 2 and run.parameters["batch_size_per_device"] == "64"
    assert run.samples["total_loss"].values == [7.9, 7.8, 7.7]


def test_tf_cnn_forward_only_with_accuracy_columns_and_time_stamps() -> None:
    text = TF.replace("training\n", "forward only\n", 1)
    text = text.replace("total_loss", "total_loss\ttop_1_accuracy\ttop_5_accuracy")
    text = re.sub(r"(\t7\.\d00)", r"\1\t0.001\t0.009 1604300399", text)
    run = one(text)
    assert run.variant == "forward only" and printed(run, "top_5_accuracy") == "0.009"
    assert normalised(run) == {"throughput": 601.95}


def test_tf_cnn_evaluation() -> None:
    text = TF[: TF.index("Step\t")] + "20\t512.3 examples/sec\n"
    text += "Accuracy @ 1 = 0.7534 Accuracy @ 5 = 0.9251 [50000 examples]\n"
    run = one(text + "-----\ntotal images/sec: 500.00\n")
    assert run.status == "ok" and normalised(run)["accuracy"] == 0.7534


def test_tf_cnn_older_header_and_a_table_alone() -> None:
    assert one(TF.replace("TensorFlow:  2.4\n", "")).parameters["model"] == "resnet50"
    run = one(TF[TF.index("Step\t") :])
    assert run.status == "ok" and printed(run, "total") == "601.95"
    assert one(TF[TF.index("total") :]).status == "ok"


def test_tf_cnn_several_runs_and_what_follows() -> None:
    runs = scan(TF + TF[: TF.index("10\t")] + TF + HOROVOD + TF)
    assert [r.status for r in runs] == ["ok", "truncated", "ok", "ok", "ok"]
    assert [r.benchmark for r in runs][3] == "horovod"


TF_CASES = [
    (lambda t: t.replace("total images/sec: 601.95", ""), "truncated", "after step 20"),
    (lambda t: t[: t.index("Step\t")], "truncated", "before the first step"),
    (
        lambda t: (
            t[: t.index("20\timages")]
            + "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating\n"
        ),
        "failed",
        "OOM",
    ),
    (
        lambda t: (
            t[: t.index("Step\t")]
            + "2020-11-02 07:14:56.452511: W tensorflow/core/x.cc:1] OOM when allocating tensor\n"
        ),
        "failed",
        "OOM",
    ),
    (lambda t: t.replace("7.700", "nan"), "invalid", "loss is nan"),
    (lambda t: t.replace("601.95", "0.00"), "invalid", "is 0"),
    (lambda t: t.replace("601.95", "nan"), "invalid", "nan"),
    (lambda t: t.replace("601.95", "6e99"), "invalid", "outside"),
    (lambda t: t.replace("601.95", "1203.90"), "invalid", "but the mean"),
]


@pytest.mark.parametrize(("change", "status", "reason"), TF_CASES)
def test_tf_cnn_status(change: Callable[[str], str], status: str, reason: str) -> None:
    run = one(change(TF))
    assert run.status == status and reason in run.reason, run.reason


# ---- Horovod ----------------------------------------------------------------------------------

HOROVOD = """\
Model: resnet50
Batch size: 32
Number of GPUs: 4
Running warmup...
Running benchmark...
Iter #0: 300.0 img/sec per GPU
Iter #1: 302.0 img/sec per GPU
Iter #2: 301.0 img/sec per GPU
Img/sec per GPU: 301.0 +-1.6
Total img/sec on 4 GPU(s): 1204.0 +-6.4
"""


def test_horovod_mean_spread_and_total() -> None:
    run = one("NCCL version 2.20\n" + HOROVOD)
    assert (run.benchmark, run.status, run.line) == ("horovod", "ok", 2)
    assert (printed(run, "per_device"), printed(run, "per_device_spread")) == ("301.0", "1.6")
    assert normalised(run) == {"samples_per_second": 1204.0}
    assert run.parameters["model"] == "resnet50" and run.parameters["devices"] == 4
    assert run.samples["iterations"].values == [300.0, 302.0, 301.0]
    assert any("1.96 standard deviations" in warning for warning in run.warnings)


def test_horovod_dialects() -> None:
    tensorflow = HOROVOD.replace("GPU", "/gpu:0").replace("Number of /gpu:0s", "Number of GPUs")
    assert one(tensorflow).parameters["device"] == "/gpu:0"
    keras = HOROVOD.replace("#0: 300.0", "#0: 90.0").replace("301.0 +", "301.5 +")
    run = one(keras.replace("1204.0", "1206.0"))
    assert (run.variant, run.status) == ("keras", "ok")
    logged = "".join(f"INFO:root:{line}\n" for line in HOROVOD.splitlines())
    assert printed(one(logged), "total") == "1204.0"
    labelled = "".join(f"[1,0]<stdout>:{line}\n" for line in HOROVOD.splitlines())
    assert printed(one(labelled), "total") == "1204.0"
    timed = re.sub(r"(Iter .*GPU)", r"\1, iteration time 106.3 ms", HOROVOD)
    assert one(timed).parameters["iterations"] == 3
    noisy = HOROVOD.replace("Batch size", "WARNING:x\nsrun: job 1 queued\nBatch size")
    assert one(noisy).parameters["model"] == "resnet50"
    table = HOROVOD[HOROVOD.index("Img/sec") :]
    assert one(table).status == "ok"


def test_horovod_several_runs() -> None:
    cut = HOROVOD[: HOROVOD.index("Img/sec")]
    runs = scan(HOROVOD + "noise\n" + cut + HOROVOD)
    assert [r.status for r in runs] == ["ok", "truncated", "ok"]


HOROVOD_CASES = [
    (lambda t: t[: t.index("Img/sec")], "truncated", "after 3 iterations"),
    (lambda t: t[: t.index("Img/sec")] + "RuntimeError: CUDA error\n", "failed", "CUDA error"),
    (lambda t: t[: t.index("Total")], "truncated", "no total"),
    (lambda t: t[: t.index("Iter")], "truncated", "after 0 iterations"),
    (lambda t: t.replace("1204.0", "2408.0"), "invalid", "4 devices of 301.0 are 1204"),
    (lambda t: t.replace("301.0 +", "401.0 +").replace("1204", "1604"), "invalid", "iterations"),
    (lambda t: t.replace("1204.0", "nan"), "invalid", "nan"),
    (lambda t: t.replace("1204.0", "-1204.0"), "invalid", "outside"),
]


@pytest.mark.parametrize(("change", "status", "reason"), HOROVOD_CASES)
def test_horovod_status(change: Callable[[str], str], status: str, reason: str) -> None:
    run = one(change(HOROVOD))
    assert run.status == status and reason in run.reason, run.reason


def test_a_model_of_hardware_is_no_horovod() -> None:
    assert one("Model: PowerEdge-R740\nVendor: x\nBatch: 1\n").benchmark == "unknown"
    assert one("Model:       79\nModel name:  Xeon\n").benchmark == "unknown"


# ---- onnxruntime_perf_test --------------------------------------------------------------------

ORT = """\
Setting intra_op_num_threads to 2
Session creation time cost: 0.25 s
First inference time cost: 12 ms
Total inference time cost: 0.5 s
Total inference requests: 50
Average inference time cost: 10 ms
Total inference run time: 0.501 s
Number of inferences per second: 99.8004
Avg CPU usage: 95 %
Peak working set size: 41943040 bytes
Avg CPU usage:95
Peak working set size:41943040
Runs:50
Min Latency: 0.009 s
Max Latency: 0.012 s
P50 Latency: 0.0099 s
P90 Latency: 0.011 s
P95 Latency: 0.0115 s
P99 Latency: 0.0119 s
P999 Latency: 0.012 s
"""


def test_ort_values_and_their_names_in_the_registry() -> None:
    run = one(ORT)
    assert (run.benchmark, run.status) == ("onnxruntime-perf-test", "ok")
    assert normalised(run) == {
        "session_time": 0.25, "throughput": 99.8004, "peak_memory": 41943040.0,
        "latency": 0.0099, "latency_p95": 0.0115,
    }  # fmt: skip
    assert run.parameters == {"intra_op_num_threads": 2, "requests": 50, "runs": 50}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("time cost: 10 ms", "time cost:10 ms"),
        ("time cost: 10 ms", "time cost total: 10.000 ms"),
        ("P50 Latency: 0.0099 s", "P50 Latency is 0.0099sec"),
        ("P50 Latency: 0.0099 s", "P50 Latency: 0.0099 s (9.90 ms)"),
        ("Avg CPU usage: 95 %", "Total CPU usage: 95 %"),
        ("99.8004", "99.8004 "),
    ],
)
def test_ort_wordings_of_other_versions(old: str, new: str) -> None:
    run = one(ORT.replace(old, new))
    assert run.status == "ok", run.reason
    assert printed(run, "average").startswith("10") and printed(run, "latency_p50") == "0.0099"


def test_ort_oldest_wording_without_units() -> None:
    run = one("Total time cost:7.34606\nTotal iterations:10\nAverage time cost:734.606 ms\n")
    assert run.status == "ok" and normalised(run) == {"latency": pytest.approx(0.734606)}
    assert run.parameters["requests"] == 10


ORT_CASES = [
    (lambda t: t.replace("cost: 10 ms", "cost: 20 ms"), "invalid", "50 requests are 10 ms"),
    (lambda t: t.replace("99.8004", "199.8"), "invalid", "199.8 requests per second, but"),
    (lambda t: t.replace("P90 Latency: 0.011", "P90 Latency: 0.0118"), "invalid", "above"),
    (lambda t: t.replace("P50 Latency: 0.0099", "P50 Latency: nan"), "invalid", "nan"),
    (lambda t: t.replace("0.25 s", "-0.25 s"), "invalid", "negative"),
    (lambda t: t.replace("41943040", "4" * 18), "invalid", "above"),
    (lambda t: t[: t.index("First")], "truncated", "only the session creation"),
    (
        lambda t: t[: t.index("First")] + "[E:onnxruntime:, x.cc:1 Run] Non-zero status code\n",
        "failed",
        "Non-zero",
    ),
    (lambda t: t[: t.index("P50")], "ok", ""),
]


@pytest.mark.parametrize(("change", "status", "reason"), ORT_CASES)
def test_ort_status(change: Callable[[str], str], status: str, reason: str) -> None:
    run = one(change(ORT))
    assert run.status == status and reason in run.reason, run.reason


def test_ort_several_sessions() -> None:
    runs = scan(ORT + ORT[ORT.index("Session") :] + ORT)
    assert [r.status for r in runs] == ["ok"] * 3
    assert [printed(r, "average") for r in runs] == ["10"] * 3


# ---- training logs ----------------------------------------------------------------------------

DLL = """\
DLL 2021-06-20 01:15:38.036441 - PARAMETER arch : resnet50  batch_size : 256  lr : 0.1
DLL 2021-06-20 01:16:39.766736 - (0, 10) total_ips : 6700.5
DLL 2021-06-20 01:16:40.069014 - (0, 20) total_ips : 6800.5
DLL 2021-06-20 01:16:41.069014 - (0, 30) total_ips : 6750.5
DLL 2021-06-20 01:22:56.358483 - () train_throughput : 6744.25
"""
DLL_UNITS = """\
DLL 2021-09-15 14:29:13.473765 - Epoch: 0 Iteration: 1  train.loss : 7.09 None  train.total_ips : 267.44 images/s
DLL 2021-09-15 14:29:14.427490 - Epoch: 0 Iteration: 2  train.loss : 6.93 None  train.total_ips : 4294.91 images/s
DLL 2021-09-15 14:30:14.427490 - Summary: train.loss : 6.93 None  train.total_ips : 4200.5 images/s
"""
DLLL = "".join(
    "DLLL " + json.dumps(record) + "\n"
    for record in (
        {"type": "PARAMETER", "step": "PARAMETER", "data": {"batch_size": 8, "amp": True}},
        {"type": "METADATA", "metric": "throughput", "metadata": {"unit": "sequences/s"}},
        {"type": "LOG", "step": [0, 1], "data": {"throughput": 70.5, "loss": 3.5}},
        {"type": "LOG", "step": [0, 2], "data": {"throughput": 71.5, "loss": 3.25}},
        {"type": "LOG", "step": [], "data": {"throughput": 71.0, "e2e_train_time": 12.5}},
    )
)
NEURON = "".join(
    f"LOG Mon Nov 14 21:27:4{i} 2022 - (0, {i}) step_loss : 4.{i} learning_rate : 1e-07"
    f" throughput : {i}.5\n"
    for i in range(1, 5)
)
NEURON_HEAD = "Namespace(batch_size=2, grad_accum_usteps=512, max_steps=9, steps_this_run={})\n"
SPEED = "".join(
    f"INFO:root:Epoch[{e}] Batch [{b}-{b + 20}]\tSpeed: 54{e}.{b} samples/sec\taccuracy=0.00{e}\n"
    + ("" if b < 40 else f"INFO:root:Epoch[{e}] Train-accuracy=0.1{e}\nINFO:root:Epoch[{e}] Time cost=47.5\n")
    for e in range(2)
    for b in (20, 40)
)  # fmt: skip
GLUON = """\
INFO:root:Epoch[0] Batch [49]\tSpeed: 1234.50 samples/sec\taccuracy=0.1\tlr=0.5
INFO:root:[Epoch 0] training: accuracy=0.250000
INFO:root:[Epoch 0] speed: 1200 samples/sec\ttime cost: 55.500000
INFO:root:[Epoch 0] validation: accuracy=0.300000
"""
GLOG = "I0219 21:50:22.95468{} 140385099970304 hooks.py:692] "
ESTIMATOR = "".join(
    GLOG.format(i) + line + "\n"
    for i, line in enumerate(
        [
            "Training for 300 steps (1.00 epochs in total). Current step 0.",
            "loss = 6.5, step = 100", "global_step/sec: 3.5", "examples/sec: 3584",
            "loss = 5.5, step = 300 (57 sec)", "global_step/sec: 3.6", "examples/sec: 3686.4",
            "Loss for final step: 5.25.", "Finished training up to step 300. Elapsed seconds 142.",
            "Saving dict for global step 300: global_step = 300, loss = 3.5, top_1_accuracy = 0.25",
        ]
    )
)  # fmt: skip
BERT = "".join(
    f"INFO:tensorflow:{line}\n{GLOG.format(1)}{line}\n"
    for line in (
        "loss = 5.9, step = 0", "global_step/sec: 1.11684", "loss = 5.8, step = 100 (89.5 sec)",
        "Loss for final step: 5.75.", "Total Training Time = 1000.00 for Sentences = 60000",
        "Total Training Time W/O Overhead = 900.00 for Sentences = 58500",
        "Throughput Average (sentences/sec) with overhead = 60.00",
        "Throughput Average (sentences/sec) = 65.00",
    )
)  # fmt: skip
FAIRSEQ = """\
| training on 16 GPUs
| epoch 001:     10 / 30 loss=11.474, ppl=2843.79, wps=26614, ups=0, wpb=60187.5, bsz=128, num_updates=10, lr=5e-05, wall=45, train_wall=40
| WARNING: overflow detected, setting loss scale to: 1024.0
| epoch 001:     20 / 30 loss=11.400, ppl=2700.79, wps=26624, ups=0, wpb=60187.5, bsz=128, num_updates=20, lr=5e-05, wall=67, train_wall=62
| epoch 001 | loss 11.341 | ppl 2593.79 | wps 26603 | ups 0 | wpb 60182.0 | bsz 127.955 | num_updates 30 | wall 90 | train_wall 85
| epoch 001 | valid on 'valid' subset | loss 10.5 | ppl 1448.15 | num_updates 30
| done training in 95.5 seconds
"""
FAIRSEQ_JSON = """\
2022-04-24 00:13:08 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "16.1", "wps": "2500", "ups": "2.5", "wpb": "1000", "bsz": "4", "num_updates": "10", "lr": "1e-05"}
2022-04-24 00:14:08 | INFO | train | {"epoch": 1, "train_loss": "15.5", "train_wps": "2512.9", "train_ups": "2.51", "train_wpb": "1000", "train_num_updates": "30", "train_train_wall": "12", "train_wall": "13"}
2022-04-24 00:14:08 | INFO | valid | {"epoch": 1, "valid_loss": "14.5", "valid_ppl": "23170"}
2022-04-24 00:14:08 | INFO | fairseq_cli.train | done training in 13.6 seconds
"""


def megatron(last: int = 4, prefix: str = " ") -> str:
    row = (
        "{}iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (ms): {:.1f} |"
        " throughput per GPU (TFLOP/s/GPU): 80.{} | learning rate: 6.9E-08 | global batch size:   128 |"
        " lm loss: {:.6E} | loss scale: 1.0 | grad norm: 26.2 | number of nan iterations:   0 |\n"
    )
    return "".join(
        row.format(prefix, i, 4, i * 128, 500 + i, i, 10.5 - i) for i in range(1, last + 1)
    )


DEEPSPEED = "".join(
    f"[2024-03-07 15:27:0{i},646] [INFO] [timer.py:260:stop] epoch=0/micro_step={i}0/global_step={i}0,"
    f" RunningAvgSamplesPerSec={'-inf' if i == 1 else f'58.{i}'}, CurrSamplesPerSec=61.{i},"
    " MemAllocated=6.01GB, MaxMemAllocated=19.52GB\n"
    for i in range(1, 4)
)
HF = """\
***** Running training *****
  Num examples = 1,000
  Num Epochs = 1
  Instantaneous batch size per device = 8
  Total train batch size (w. parallel, distributed & accumulation) = 10
  Total optimization steps = 100
{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.5}
{'loss': 1.5, 'grad_norm': 1.25, 'learning_rate': 1e-05, 'epoch': 1.0}
{'eval_loss': 1.25, 'eval_accuracy': 0.75, 'eval_runtime': 2.0, 'eval_samples_per_second': 50.0, 'epoch': 1.0}
100%|##########| 100/100 [00:50<00:00,  2.0it/s]{'train_runtime': 50.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 2.0, 'train_loss': 2.0, 'epoch': 1.0}
***** train metrics *****
  epoch                    =        1.0
  total_flos               = 1268772033GF
  train_loss               =        2.0
  train_runtime            = 0:00:50.00
  train_samples_per_second =       20.0
"""  # fmt: skip

TRAININGS = {
    "dllogger": DLL, "dllogger units": DLL_UNITS, "dllogger json": DLLL,
    "neuron": NEURON_HEAD.format(4) + NEURON,
    "mxnet": SPEED, "mxnet gluon": GLUON, "tensorflow": ESTIMATOR, "nvidia-bert-tensorflow": BERT,
    "fairseq": FAIRSEQ, "fairseq json": FAIRSEQ_JSON, "megatron": megatron(),
    "deepspeed": DEEPSPEED, "hf-trainer": HF,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("dllogger", 6744.25), ("dllogger units", 4200.5), ("dllogger json", 71.0),
        ("neuron", 2.5), ("mxnet", 540.4), ("mxnet gluon", 1200.0), ("tensorflow", 3584.0),
        ("nvidia-bert-tensorflow", 65.0), ("fairseq", None), ("fairseq json", None),
        ("megatron", 254.473), ("deepspeed", 58.3), ("hf-trainer", 20.0),
    ],
)  # fmt: skip
def test_trainings_of_each_variant(name: str, rate: float | None) -> None:
    run = one("noise\n" + TRAININGS[name])
    assert (run.benchmark, run.variant) == ("dl-training", name.split()[0])
    assert run.status == "ok", run.reason
    assert normalised(run).get("samples_per_second") == rate


def test_training_values() -> None:
    run = one(DLL)
    assert run.samples["total_ips"].values == [6700.5, 6800.5, 6750.5]
    assert printed(run, "total_ips", "median") == "6750.5"
    assert (run.parameters["arch"], run.parameters["batch_size"]) == ("resnet50", 256)
    assert one(DLLL).parameters["amp"] is True
    run = one(FAIRSEQ)
    assert printed(run, "epoch_wps") == "26603" and printed(run, "valid_loss") == "10.5"
    assert normalised(run)["train_time"] == 95.5 and run.parameters["world_size"] == 16
    assert printed(one(FAIRSEQ_JSON), "epoch_wps") == "2512.9"
    run = one(megatron())
    assert printed(run, "elapsed time per iteration (ms)", "median") == "502.0"
    assert normalised(run)["step_time"] == pytest.approx(0.502)
    assert run.parameters["planned_iterations"] == 4
    run = one(HF)
    assert normalised(run)["train_time"] == 50.0 and printed(run, "eval_accuracy") == "0.75"
    assert run.parameters["total_optimization_steps"] == 100
    run = one(ESTIMATOR)
    assert printed(run, "eval_top_1_accuracy") == "0.25" and normalised(run)["train_time"] == 142.0
    assert one(BERT).samples["loss"].values == [5.9, 5.8]  # every line stands there twice
    run = one(SPEED)
    assert printed(run, "epoch_time") == "47.5" and printed(run, "train_accuracy") == "0.11"


def test_trainings_in_other_dress() -> None:
    assert one(megatron(prefix="[2025-08-01 07:19:37] ")).status == "ok"
    legacy = " iteration 5/ 5 | elapsed time per iteration (ms): 51.5 | learning rate 1.5E-04 | lm loss 9.7E+00 |\n"
    assert printed(one(legacy), "lm loss") == "9.7E+00"
    quoted = HF.replace("'loss': 2.5", "'loss': '2.5'").replace(
        "50.0, 'train_s", "'50.0', 'train_s"
    )
    assert one(quoted).status == "ok" and one(quoted).samples["loss"].values == [2.5, 1.5]
    logged = HF.replace("***** Run", "[INFO|trainer.py:1516] 2023-05-10 09:09:22,555 >> ***** Run")
    assert one(logged).parameters["num_epochs"] == 1
    labelled = "".join(f"3: {line}\n" for line in HF.splitlines())
    assert one(labelled).parameters["rank"] == 3
    mixed = one(HF.replace("{'eval", DEEPSPEED + "{'eval"))
    assert mixed.variant == "hf-trainer" and mixed.parameters["also_prints"] == ["deepspeed"]
    old = "[2021-01-01 00:00:00,1] [INFO] [timer.py:157:stop] 0/10, SamplesPerSec=22.5\n"
    assert normalised(one(old)) == {"samples_per_second": 22.5}


TRAINING_CASES = [
    ("dllogger", lambda t: t[: t.index("DLL 2021-06-20 01:22")], "truncated", "0, 30"),
    ("dllogger", lambda t: t.splitlines()[0] + "\n", "truncated", "before the first step"),
    ("dllogger", lambda t: t.replace("6744.25", "-6744.25"), "invalid", "outside"),
    ("dllogger", lambda t: t.replace("6744.25", "9e30"), "invalid", "outside"),
    ("dllogger json", lambda t: t.replace("3.25", "NaN"), "invalid", "loss is NaN"),
    ("neuron", lambda t: t.replace("run=4", "run=9"), "truncated", "0, 4 of 9 steps"),
    ("mxnet", lambda t: t[: t.rindex("INFO:root:Epoch[1] Time")], "ok", ""),
    ("mxnet", lambda t: t[: t.index("INFO:root:Epoch[0] Time")], "truncated", "Time cost"),
    ("tensorflow", lambda t: t[: t.index(GLOG.format(7))], "truncated", "final step"),
    (
        "tensorflow",
        lambda t: t[: t.index(GLOG.format(7))] + "slurmstepd: error: *** STEP CANCELLED\n",
        "failed",
        "CANCELLED",
    ),
    ("nvidia-bert-tensorflow", lambda t: t.replace("= 65.00", "= 95.00"), "invalid", "95.00"),
    ("fairseq", lambda t: t[: t.index("| done")], "truncated", "done training in"),
    ("fairseq", lambda t: t[: t.index("| epoch 001 |")] + "RuntimeError: x\n", "failed", "x"),
    ("fairseq json", lambda t: t.replace('"2512.9"', '"9999999"'), "invalid", "9999999"),
    ("megatron", lambda t: megatron(3), "truncated", "3 of 4 iterations"),
    ("megatron", lambda t: megatron(3) + "Out of memory\n", "failed", "Out of memory"),
    ("megatron", lambda t: t.replace("6.500000E+00", "NAN"), "invalid", "lm loss is NAN"),
    ("hf-trainer", lambda t: t[: t.index("100%")], "truncated", "train_runtime"),
    (
        "hf-trainer",
        lambda t: t[: t.index("100%")] + "torch.cuda.OutOfMemoryError: CUDA out of memory.\n",
        "failed",
        "OutOfMemoryError",
    ),
    (
        "hf-trainer",
        lambda t: "ImportError: caught\nsrun: error: n1: task 0: Killed\n" + t,
        "ok",
        "",
    ),
    ("hf-trainer", lambda t: t.replace("steps_per_second': 2.0", "steps_per_second': 9.0"),
     "invalid", "9.0 steps per second, but"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "status", "reason"), TRAINING_CASES)
def test_training_status(name: str, change: Callable[[str], str], status: str, reason: str) -> None:
    run = scan(change(TRAININGS[name]))[-1]
    assert run.status == status and reason in run.reason, (run.status, run.reason)


@pytest.mark.parametrize("name", [n for n in TRAININGS if n != "dllogger json"])
def test_two_trainings_in_one_file(name: str) -> None:
    runs = scan(TRAININGS[name] + TRAININGS[name])
    assert len(runs) == 2, [(r.status, r.reason) for r in runs]


def test_no_words_or_unlabelled_rates_count_as_samples() -> None:
    assert rate_of("train_throughput", "") == ("1/s", None)
    assert rate_of("throughput", "tokens/s") == ("tokens/s", None)
    assert rate_of("train.compute_ips", "") == ("1/s", "samples_per_second")
    assert rate_of("loss", "") is None
    assert hours("1 day, 2:00:00.50") == 93600.5 and hours("1:00") is None


# ---- all of them ------------------------------------------------------------------------------

LOGS = {
    "mlperf": mlperf(), "mlperf-0.5": OLD, "hpc": mlperf("cosmoflow", "eval_error", (0.2, 0.1)),
    "tf": TF, "horovod": HOROVOD, "ort": ORT, **TRAININGS,
}  # fmt: skip


def results(runs: list[Run]) -> list[object]:
    return [(r.benchmark, r.status, [(m.name, m.printed) for m in r.metrics]) for r in runs]


DISGUISES: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda t: t.replace("\n", "\r\n").encode(),
    "UTF-16": lambda t: t.encode("utf-16"),
    "colours": lambda t: re.sub(r"(?m)^", "\x1b[0;31m", t).replace("\n", "\x1b[0m\n").encode(),
    "srun -l": lambda t: re.sub(r"(?m)^", "0: ", t).encode(),
    "Open MPI tags": lambda t: re.sub(r"(?m)^", "[1,0]<stdout>:", t).encode(),
    "noise": lambda t: re.sub(r"(?m)^", "srun: job 1 queued\nslurm: x=1\n", t).encode(),
    "a million characters": lambda t: b"x" * 1_000_000 + b"\n" + t.encode() + b"y" * 1_000_000,
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", LOGS)
def test_a_disguised_log_yields_the_same_results(name: str, disguise: str) -> None:
    assert results(scan(DISGUISES[disguise](LOGS[name]))) == results(scan(LOGS[name]))


NUMBERS = re.compile(r"\d:\d\d:[\d.]+|-?[\d.]*\d(?:[eE][-+]?\d+)?")


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_at_any_byte_never_yields_a_wrong_number_that_is_ok(name: str) -> None:
    text = LOGS[name]
    # A cut number would be none of these.
    full = {m.printed for run in scan(text) for m in run.metrics} | set(NUMBERS.findall(text))
    for end in range(len(text) // 2, len(text), max(1, len(text) // 200)):
        for run in scan(text[:end]):
            if run.status == "ok":
                found = {m.printed for m in run.metrics if "computed" not in m.name}
                assert found <= full, found - full


def test_mixed_file_keeps_the_order() -> None:
    runs = scan(TF + HOROVOD + ORT + DLL + mlperf() + ORT + FAIRSEQ + HOROVOD)
    assert [r.benchmark for r in runs] == [
        "tf-cnn-benchmarks", "horovod", "onnxruntime-perf-test", "dl-training", "mlperf-training",
        "onnxruntime-perf-test", "dl-training", "horovod",
    ]  # fmt: skip
    assert {r.status for r in runs} == {"ok"}


@pytest.mark.parametrize("name", LOGS)
def test_many_lines_of_one_log_take_little_time_and_memory(name: str) -> None:
    lines = LOGS[name].splitlines()
    text = "\n".join(lines[i % len(lines)] for i in range(6000))
    start = time.process_time()
    runs = scan(text)
    assert time.process_time() - start < 30
    for run in runs:
        assert all(len(series.values) <= 10_000 for series in run.samples.values())
        assert len(run.parameters) < 200 and len(run.metrics) < 200


@settings(deadline=None, max_examples=120)
@given(st.sampled_from(sorted(LOGS)), st.integers(0, 2**32), st.integers(1, 12))
def test_no_mutation_breaks_a_parser(name: str, seed: int, times: int) -> None:
    chance = random.Random(seed)
    lines = LOGS[name].encode().split(b"\n")
    junk = [
        b"nan",
        b"-inf",
        b"1e999",
        b"9" * 400,
        b"{",
        b"'",
        b":::MLLOG {",
        b"\x00\xff",
        b"| ",
        b" : ",
    ]
    for _ in range(times):
        at = chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0:
            del lines[at]
            lines = lines or [b""]
        elif kind == 1:
            lines.insert(at, lines[at])
        elif kind == 2:
            chance.shuffle(lines)
        elif kind == 3:
            lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
        elif kind == 4:
            words = lines[at].split(b" ")
            words[chance.randrange(len(words))] = chance.choice(junk)
            lines[at] = b" ".join(words)
        else:
            lines.insert(at, chance.randbytes(chance.randrange(60)))
    for run in scan(b"\n".join(lines)):
        assert Run.model_validate_json(run.model_dump_json()) == run


FORCED = {
    name: Scanner(name)
    for name in (
        "mlperf-training", "mlperf-hpc", "tf-cnn-benchmarks", "horovod", "dl-training",
        "onnxruntime-perf-test",
    )
}  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(FORCED)),
    st.one_of(
        st.binary(max_size=300),
        st.lists(st.sampled_from(re.findall(r"\S+|\n", "".join(LOGS.values()))), max_size=80).map(
            lambda words: " ".join(words).encode()
        ),
    ),
)
def test_no_input_breaks_a_parser_that_was_named(name: str, raw: bytes) -> None:
    for run in scan(raw, FORCED[name]):
        assert Run.model_validate_json(run.model_dump_json()) == run
