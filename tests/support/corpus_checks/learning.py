"""What a person read in real logs of machine-learning benchmarks, against what the parsers found."""

from __future__ import annotations

import re

from corpus_facts import Check, Facts, Truth, parameters, printed, same, status, values
from transect.hpc.base import Run


def _recognised(runs: list[Run]) -> tuple[str, bool]:
    return "recognised", len(runs) == 1


def _mlperf(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    took = run.metric("time_to_train")
    facts = [_recognised(runs), ("value benchmark", run.variant == truth["benchmark"]), ("status", run.status == "ok")]
    if "time_to_train_s" in truth:
        right = took is not None and abs(took.value - float(truth["time_to_train_s"])) <= 5e-4
        facts.append(("value time_to_train_s", right))
    if truth["status"] == "success":
        facts.append(("value status", run.parameters.get("run_status") == "success"))
    else:
        facts.append(("value status", "run_status" not in run.parameters))
    for key in ("eval_error", "eval_accuracy"):
        if f"final_{key}" in truth:
            printed, _, note = truth[f"final_{key}"].partition("(")
            found = run.metric(key)
            negated = found is None  # an error that the log has as a negative accuracy
            found = run.metric("eval_accuracy") if negated else found
            stated = found.printed.lstrip("-") if found is not None else ""
            facts.append((f"value final_{key}", stated == printed))
            lower = ("lower" in note or "error" in key) and not negated
            facts.append(("direction", found is not None and (found.direction == "lower") == lower))
    if "first_eval" in truth:
        first = run.samples["eval_accuracy"].values[0]
        facts.append(("value first_eval", first == float(truth["first_eval"].split()[0])))
    facts += values(run, truth, "staging_s=staging_time")
    if "format" in truth:
        facts.append(("value format", f":::MLPv{run.version}" == truth["format"]))
    if "epoch_num counts samples" in text:
        counted = re.search(r"counts samples \((\d+)\)", text)
        epochs = run.parameters.get("last_epoch_num"), run.parameters.get("epoch_num_counts")
        facts.append(("value epoch_num", epochs == (counted and counted[1], "samples")))
    names = (
        "evals=evaluations global_batch=global_batch_size seed nodes=number_of_nodes ranks=number_of_ranks "
        "org=submission_org accelerators_per_node train_samples"
    )
    return facts + parameters(run, truth, names)


def _tf_cnn(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [_recognised(runs), *status(runs), *values(run, truth, "total_images_per_s=total", printed)]
    if truth.get("mode") == "inference":
        facts.append(("value mode", run.variant == "forward only"))
    if "last_step" in truth:
        step, rate = truth["last_step"].split(":")
        last = run.metric("images_per_second")
        right = last is not None and (last.size, last.printed) == (int(step), rate)
        facts.append(("value last_step", right))
    return facts + parameters(run, truth, "model global_batch=batch_size_global gpus=devices")


def _horovod(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    names = "img_s_per_gpu=per_device img_s_per_gpu_ci=per_device_spread total_img_s=total total_ci=total_spread"
    facts = [_recognised(runs), *status(runs), *values(run, truth, names, printed)]
    return facts + parameters(run, truth, "model batch=batch_size gpus=devices")


# Key of the truth = metric : phase.
_DL = """
throughput_sentences_s=throughput_average throughput_with_overhead=throughput_average_with_overhead
train_throughput_img_s=train_throughput last_throughput=throughput:last last_step_loss=step_loss:last
last_speed=speed:last train_accuracy epoch_time_s=epoch_time top1=eval_top_1_accuracy top5=eval_top_5_accuracy
epoch_wps loss=epoch_loss ppl=epoch_ppl wall_s=epoch_wall done_training_s=training_time
"""
_FRAMEWORKS = {
    "NVIDIA BERT TF": "nvidia-bert-tensorflow",
    "NVIDIA DLE (DLLogger)": "dllogger",
    "HF BERT (LOG lines)": "neuron",
    "MXNet": "mxnet",
    "TPU ResNet": "tensorflow",
    "fairseq": "fairseq",
    "Megatron-DeepSpeed": "megatron",
}


def _dl_training(truth: Truth, text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [_recognised(runs), ("value framework", run.variant == _FRAMEWORKS[truth["framework"]])]
    facts += values(run, truth, _DL)
    for place, part in (("first", 0), ("last", -1)):
        match = re.search(rf"{place}:elapsed_ms=([\d.]+),samples_s=([\d.]+),tflops=([\d.]+)", text)
        names = ("elapsed time per iteration (ms)", "samples per second", "tflops")
        for name, value in zip(names, match.groups() if match else (), strict=False):
            facts.append((f"value {place} {name}", run.samples[name].values[part] == float(value)))
    facts += parameters(run, truth, "iterations=planned_iterations")
    if "last_total_ips" in truth:
        value, _, step = truth["last_total_ips"].partition(" at step ")
        facts.append(("value last_total_ips", same(run.metric("total_ips", "last"), value)))
        shown = f"({str(run.parameters['last_step']).replace(' ', '')})"
        facts.append(("value last_step", shown == step))
    if "first_speed" in truth:
        first = run.samples["speed"].values[0]
        facts.append(("value first_speed", first == float(truth["first_speed"].split()[0])))
    if "examples_per_s" in truth:
        wanted = [float(part) for part in truth["examples_per_s"].split(",")]
        facts.append(("value examples_per_s", run.samples["examples/sec"].values == wanted))
    if "steps" in truth:
        last = str(run.parameters["last_step"]).rsplit(" ", 1)[-1]
        facts.append(("value steps", last == truth["steps"]))
    # This log ends at step 24 of the 1563 that its arguments announce; the others end properly.
    expected = "truncated" if truth["framework"].startswith("HF BERT") else "ok"
    return facts + status(runs, expected)


def _onnxruntime(truth: Truth, text: str, runs: list[Run]) -> Facts:
    names = (
        "avg_ms=average first_ms=first_inference ips=requests_per_second session_creation_s=session_creation "
        "p50_s=latency_p50 p99_s=latency_p99 min_s=latency_min peak_ws_bytes=peak_working_set"
    )
    facts = [_recognised(runs), *status(runs), *values(runs[0], truth, names, printed)]
    return facts + parameters(runs[0], truth, "requests")


CHECKS: dict[str, Check] = {
    "MLPerf-Training": _mlperf,
    "MLPerf-HPC": _mlperf,
    "tf_cnn_benchmarks": _tf_cnn,
    "horovod": _horovod,
    "dl-training": _dl_training,
    "onnxruntime_perf_test": _onnxruntime,
}
