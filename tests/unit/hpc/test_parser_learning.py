"""Logs of tf_cnn_benchmarks, Horovod and onnxruntime_perf_test."""

from __future__ import annotations

import re

import pytest
from learning_logs import HOROVOD, ORT, TF, normalised, only_run, printed
from log_scan import scan


def test_tf_cnn_total_steps_and_columns() -> None:
    run = only_run(TF)
    assert (run.benchmark, run.variant, run.version, run.status) == ("tf-cnn-benchmarks", "training", "2.4", "ok")
    assert printed(run, "total") == "601.95" and normalised(run) == {"samples_per_second": 601.95}
    assert (printed(run, "jitter"), printed(run, "uncertainty")) == ("3.5", "1.1")
    assert run.parameters["devices"] == 2 and run.parameters["batch_size_per_device"] == "64"
    assert run.samples["total_loss"].values == [7.9, 7.8, 7.7]


def test_tf_cnn_forward_only_with_accuracy_columns_and_time_stamps() -> None:
    text = TF.replace("training\n", "forward only\n", 1)
    text = text.replace("total_loss", "total_loss\ttop_1_accuracy\ttop_5_accuracy")
    text = re.sub(r"(\t7\.\d00)", r"\1\t0.001\t0.009 1604300399", text)
    run = only_run(text)
    assert run.variant == "forward only" and printed(run, "top_5_accuracy") == "0.009"
    assert normalised(run) == {"throughput": 601.95}


def test_tf_cnn_evaluation() -> None:
    text = TF[: TF.index("Step\t")] + "20\t512.3 examples/sec\n"
    text += "Accuracy @ 1 = 0.7534 Accuracy @ 5 = 0.9251 [50000 examples]\n"
    run = only_run(text + "-----\ntotal images/sec: 500.00\n")
    assert run.status == "ok" and normalised(run)["accuracy"] == 0.7534


def test_tf_cnn_older_header_and_a_table_alone() -> None:
    assert only_run(TF.replace("TensorFlow:  2.4\n", "")).parameters["model"] == "resnet50"
    run = only_run(TF[TF.index("Step\t") :])
    assert run.status == "ok" and printed(run, "total") == "601.95"
    assert only_run(TF[TF.index("total") :]).status == "ok"


def test_tf_cnn_several_runs_and_what_follows() -> None:
    runs = scan(TF + TF[: TF.index("10\t")] + TF + HOROVOD + TF)
    assert [r.status for r in runs] == ["ok", "truncated", "ok", "ok", "ok"]
    assert [r.benchmark for r in runs][3] == "horovod"


def doubled(text: str) -> str:
    """Two workers that print the same lines, the second one a little slower."""
    slower = text.replace("600.1", "599.1").replace("601.2", "598.2").replace("602.3", "597.3")
    pairs = zip(text.splitlines(keepends=True), slower.splitlines(keepends=True), strict=True)
    return "".join(first + second for first, second in pairs)


def test_two_workers_of_horovod_without_labels_are_two_runs() -> None:
    text = doubled(TF.replace("replicated", "horovod"))
    runs = scan(text)
    assert [(r.status, r.parameters["steps"], printed(r, "total")) for r in runs] == [("ok", 20, "601.95")] * 2
    assert [r.samples["images_per_second"].values for r in runs] == [[600.1, 601.2, 602.3], [599.1, 598.2, 597.3]]
    assert all(any("interleave" in w for w in r.warnings) for r in runs)
    # One is a step behind; one prints no steps; the head is lost; nothing tells the second total.
    lines = text.splitlines(keepends=True)
    steps = [i for i, line in enumerate(lines) if "jitter" in line]
    lines[steps[1]], lines[steps[2]] = lines[steps[2]], lines[steps[1]]
    assert [r.status for r in scan("".join(lines))] == ["ok", "ok"]
    silent = "".join(line for line in text.splitlines(keepends=True) if not re.search(r"59\d\.\d \+", line))
    assert [r.status for r in scan(silent.replace("total images/sec: 601.95\n", "", 1))] == ["ok"]
    assert [r.status for r in scan(text[text.index("1\timages") :])] == ["ok", "ok"]
    assert [r.status for r in scan(text.replace("total images/sec: 601.95\n", "", 1))] == ["ok", "truncated"]


def test_a_run_that_died_before_its_first_step_does_not_lend_its_settings() -> None:
    died = TF[: TF.index("Step\t")].replace("resnet50", "vgg16")
    runs = scan(died + TF)
    assert [(r.status, r.parameters["model"]) for r in runs] == [("truncated", "vgg16"), ("ok", "resnet50")]


def test_horovod_mean_spread_and_total() -> None:
    run = only_run("NCCL version 2.20\n" + HOROVOD)
    assert (run.benchmark, run.status, run.line) == ("horovod", "ok", 2)
    assert (printed(run, "per_device"), printed(run, "per_device_spread")) == ("301.0", "1.6")
    assert normalised(run) == {"samples_per_second": 1204.0}
    assert run.parameters["model"] == "resnet50" and run.parameters["devices"] == 4
    assert run.samples["iterations"].values == [300.0, 302.0, 301.0]
    assert any("1.96 standard deviations" in warning for warning in run.warnings)


def test_horovod_dialects() -> None:
    tensorflow = HOROVOD.replace("GPU", "/gpu:0").replace("Number of /gpu:0s", "Number of GPUs")
    assert only_run(tensorflow).parameters["device"] == "/gpu:0"
    keras = HOROVOD.replace("#0: 300.0", "#0: 90.0").replace("301.0 +", "301.5 +")
    run = only_run(keras.replace("1204.0", "1206.0"))
    assert (run.variant, run.status) == ("keras", "ok")
    logged = "".join(f"INFO:root:{line}\n" for line in HOROVOD.splitlines())
    assert printed(only_run(logged), "total") == "1204.0"
    labelled = "".join(f"[1,0]<stdout>:{line}\n" for line in HOROVOD.splitlines())
    assert printed(only_run(labelled), "total") == "1204.0"
    timed = re.sub(r"(Iter .*GPU)", r"\1, iteration time 106.3 ms", HOROVOD)
    assert only_run(timed).parameters["iterations"] == 3
    noisy = HOROVOD.replace("Batch size", "WARNING:x\nsrun: job 1 queued\nBatch size")
    assert only_run(noisy).parameters["model"] == "resnet50"
    table = HOROVOD[HOROVOD.index("Img/sec") :]
    assert only_run(table).status == "ok"


def test_horovod_several_runs() -> None:
    cut = HOROVOD[: HOROVOD.index("Img/sec")]
    runs = scan(HOROVOD + "noise\n" + cut + HOROVOD)
    assert [r.status for r in runs] == ["ok", "truncated", "ok"]


def test_a_model_of_hardware_is_no_horovod() -> None:
    assert only_run("Model: PowerEdge-R740\nVendor: x\nBatch: 1\n").benchmark == "unknown"
    assert only_run("Model:       79\nModel name:  Xeon\n").benchmark == "unknown"


def test_ort_values_and_their_names_in_the_registry() -> None:
    run = only_run(ORT)
    assert (run.benchmark, run.status) == ("onnxruntime-perf-test", "ok")
    assert normalised(run) == {
        "session_time": 0.25,
        "throughput": 99.8004,
        "peak_memory": 41943040.0,
        "latency": 0.0099,
        "latency_p95": 0.0115,
    }
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
    run = only_run(ORT.replace(old, new))
    assert run.status == "ok", run.reason
    assert printed(run, "average").startswith("10") and printed(run, "latency_p50") == "0.0099"


def test_ort_oldest_wording_without_units() -> None:
    run = only_run("Total time cost:7.34606\nTotal iterations:10\nAverage time cost:734.606 ms\n")
    assert run.status == "ok" and normalised(run) == {"latency": pytest.approx(0.734606)}
    assert run.parameters["requests"] == 10


def test_ort_several_sessions() -> None:
    runs = scan(ORT + ORT[ORT.index("Session") :] + ORT)
    assert [r.status for r in runs] == ["ok"] * 3
    assert [printed(r, "average") for r in runs] == ["10"] * 3
