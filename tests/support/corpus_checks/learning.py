"""What a person read in real logs of machine-learning benchmarks, against what the parsers found."""

from __future__ import annotations

import re
from collections.abc import Callable

from transect.hpc.base import LogMetric, Run

Facts = list[tuple[str, bool]]


def _near(found: LogMetric | None, expected: str, relative: float = 1e-9) -> bool:
    return found is not None and abs(found.value - float(expected)) <= relative * abs(float(expected))


def _recognised(runs: list[Run], slug: str) -> tuple[str, bool]:
    return "recognised", [r.benchmark for r in runs] == [slug]


def _parameters(run: Run, truth: dict[str, str], names: dict[str, str]) -> Facts:
    return [
        (f"value {key}", str(run.parameters.get(name)) == truth[key].split("(")[0])
        for key, name in names.items()
        if key in truth
    ]


def _mlperf(slug: str) -> Callable[[dict[str, str], str, list[Run]], Facts]:
    def check(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
        run = runs[0]
        took = run.metric("time_to_train")
        facts = [
            _recognised(runs, slug),
            ("value benchmark", run.variant == truth["benchmark"]),
            ("status", run.status == "ok"),
        ]
        if "time_to_train_s" in truth:
            expected = float(truth["time_to_train_s"])
            right = took is not None and abs(took.value - expected) <= 5e-4
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
                said = found.printed.lstrip("-") if found is not None else ""
                facts.append((f"value final_{key}", said == printed))
                lower = ("lower" in note or "error" in key) and not negated
                facts.append(("direction", found is not None and (found.direction == "lower") == lower))
        if "first_eval" in truth:
            first = run.samples["eval_accuracy"].values[0]
            facts.append(("value first_eval", first == float(truth["first_eval"].split()[0])))
        if "staging_s" in truth:
            facts.append(("value staging_s", _near(run.metric("staging_time"), truth["staging_s"])))
        if "format" in truth:
            facts.append(("value format", f":::MLPv{run.version}" == truth["format"]))
        if "epoch_num counts samples" in text:
            counted = re.search(r"counts samples \((\d+)\)", text)
            said = run.parameters.get("last_epoch_num"), run.parameters.get("epoch_num_counts")
            facts.append(("value epoch_num", said == (counted and counted[1], "samples")))
        names = {
            "evals": "evaluations",
            "global_batch": "global_batch_size",
            "seed": "seed",
            "nodes": "number_of_nodes",
            "ranks": "number_of_ranks",
            "org": "submission_org",
            "accelerators_per_node": "accelerators_per_node",
            "train_samples": "train_samples",
        }
        return facts + _parameters(run, truth, names)

    return check


def _tf_cnn(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    total = run.metric("total")
    facts = [
        _recognised(runs, "tf-cnn-benchmarks"),
        ("status", run.status == "ok"),
        ("value total_images_per_s", total is not None and total.printed == truth["total_images_per_s"]),
    ]
    if truth.get("mode") == "inference":
        facts.append(("value mode", run.variant == "forward only"))
    if "last_step" in truth:
        step, rate = truth["last_step"].split(":")
        last = run.metric("images_per_second")
        right = last is not None and (last.size, last.printed) == (int(step), rate)
        facts.append(("value last_step", right))
    names = {"model": "model", "global_batch": "batch_size_global", "gpus": "devices"}
    return facts + _parameters(run, truth, names)


def _horovod(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [_recognised(runs, "horovod"), ("status", run.status == "ok")]
    for key, name in (
        ("img_s_per_gpu", "per_device"),
        ("img_s_per_gpu_ci", "per_device_spread"),
        ("total_img_s", "total"),
        ("total_ci", "total_spread"),
    ):
        found = run.metric(name)
        facts.append((f"value {key}", found is not None and found.printed == truth[key]))
    names = {"model": "model", "batch": "batch_size", "gpus": "devices"}
    return facts + _parameters(run, truth, names)


# Key of the truth -> variant in which it stands, metric, phase.
_DL = {
    "throughput_sentences_s": ("throughput_average", None),
    "throughput_with_overhead": ("throughput_average_with_overhead", None),
    "train_throughput_img_s": ("train_throughput", None),
    "last_throughput": ("throughput", "last"),
    "last_step_loss": ("step_loss", "last"),
    "last_speed": ("speed", "last"),
    "train_accuracy": ("train_accuracy", None),
    "epoch_time_s": ("epoch_time", None),
    "top1": ("eval_top_1_accuracy", None),
    "top5": ("eval_top_5_accuracy", None),
    "epoch_wps": ("epoch_wps", None),
    "loss": ("epoch_loss", None),
    "ppl": ("epoch_ppl", None),
    "wall_s": ("epoch_wall", None),
    "done_training_s": ("training_time", None),
}
_FRAMEWORKS = {
    "NVIDIA BERT TF": "nvidia-bert-tensorflow",
    "NVIDIA DLE (DLLogger)": "dllogger",
    "HF BERT (LOG lines)": "neuron",
    "MXNet": "mxnet",
    "TPU ResNet": "tensorflow",
    "fairseq": "fairseq",
    "Megatron-DeepSpeed": "megatron",
}


def _dl_training(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [_recognised(runs, "dl-training"), ("value framework", run.variant == _FRAMEWORKS[truth["framework"]])]
    for key, (name, phase) in _DL.items():
        if key in truth:
            facts.append((f"value {key}", _near(run.metric(name, phase), truth[key])))
    for place, part in (("first", 0), ("last", -1)):
        told = re.search(rf"{place}:elapsed_ms=([\d.]+),samples_s=([\d.]+),tflops=([\d.]+)", text)
        names = ("elapsed time per iteration (ms)", "samples per second", "tflops")
        for name, value in zip(names, told.groups() if told else (), strict=False):
            facts.append((f"value {place} {name}", run.samples[name].values[part] == float(value)))
    if "iterations" in truth:
        planned = str(run.parameters.get("planned_iterations"))
        facts.append(("value iterations", planned == truth["iterations"]))
    if "last_total_ips" in truth:
        value, _, step = truth["last_total_ips"].partition(" at step ")
        facts.append(("value last_total_ips", _near(run.metric("total_ips", "last"), value)))
        said = f"({str(run.parameters['last_step']).replace(' ', '')})"
        facts.append(("value last_step", said == step))
    if "first_speed" in truth:
        first = run.samples["speed"].values[0]
        facts.append(("value first_speed", first == float(truth["first_speed"].split()[0])))
    if "examples_per_s" in truth:
        wanted = [float(one) for one in truth["examples_per_s"].split(",")]
        facts.append(("value examples_per_s", run.samples["examples/sec"].values == wanted))
    if "steps" in truth:
        last = str(run.parameters["last_step"]).rsplit(" ", 1)[-1]
        facts.append(("value steps", last == truth["steps"]))
    # This log ends at step 24 of the 1563 that its arguments announce; the others end properly.
    expected = "truncated" if truth["framework"].startswith("HF BERT") else "ok"
    return [*facts, ("status", run.status == expected)]


def _onnxruntime(truth: dict[str, str], text: str, runs: list[Run]) -> Facts:
    run = runs[0]
    facts = [_recognised(runs, "onnxruntime-perf-test"), ("status", run.status == "ok")]
    for key, name in (
        ("avg_ms", "average"),
        ("first_ms", "first_inference"),
        ("ips", "requests_per_second"),
        ("session_creation_s", "session_creation"),
        ("p50_s", "latency_p50"),
        ("p99_s", "latency_p99"),
        ("min_s", "latency_min"),
        ("peak_ws_bytes", "peak_working_set"),
    ):
        if key in truth:
            found = run.metric(name)
            facts.append((f"value {key}", found is not None and found.printed == truth[key]))
    return facts + _parameters(run, truth, {"requests": "requests"})


CHECKS: dict[str, Callable[[dict[str, str], str, list[Run]], Facts]] = {
    "MLPerf-Training": _mlperf("mlperf-training"),
    "MLPerf-HPC": _mlperf("mlperf-hpc"),
    "tf_cnn_benchmarks": _tf_cnn,
    "horovod": _horovod,
    "dl-training": _dl_training,
    "onnxruntime_perf_test": _onnxruntime,
}
