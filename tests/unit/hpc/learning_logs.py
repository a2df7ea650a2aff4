"""Logs of machine learning as the tests of their parsers need them."""

from __future__ import annotations

import json

from log_scan import made, scan

from transect.hpc.base import Run


def only_run(text: str) -> Run:
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
        "namespace": "",
        "time_ms": ms,
        "event_type": kind,
        "key": key,
        "value": value,
        "metadata": {"file": "train.py", "lineno": 7, **metadata},
    }
    return ":::MLLOG " + json.dumps(record) + "\n"


T0 = 1_700_000_000_000


def mlperf(
    name: str = "resnet", key: str = "eval_accuracy", values=(0.5, 0.7601), status="success", start: int = T0
) -> str:
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
            (60, "run_clear_caches"),
            (71, "run_start"),
            (72, 'opt_name: "adam"'),
            (72, "run_set_random_seed: 11"),
            (72, "opt_learning_rate: [0.0006]"),
            (80, 'eval_accuracy: {"epoch": 0, "value": 21.5}'),
            (80, "eval_target: 25.0"),
            (90, 'eval_accuracy: {"epoch": 1, "value": 25.25}'),
            (91, "run_stop"),
            (92, "run_final"),
        ]
    )
)


def mll(name: str = "mask", values: tuple[object, ...] = (0.31, 0.38), start: float = 1_558_000_000.0) -> str:
    """Version 0.6 without a number in its tag; the submission stands without a time before all else."""
    events: list[tuple[float, str, object, dict[str, object]]] = [
        (0.0, "submission_benchmark", name, {}),
        (0.0, "submission_org", "nobody", {}),
        (start - 90, "cache_clear", None, {}),
        (start - 80, "init_start", None, {}),
        (start - 70, "global_batch_size", 128, {}),
        (start - 1, "init_stop", None, {}),
        (start, "run_start", None, {}),
    ]
    for i, value in enumerate(values):
        at = start + 100.25 * (i + 1)
        events += [(at - 9, "eval_start", None, {"epoch_num": i}), (at, "eval_accuracy", value, {"epoch_num": i})]
    events.append((at + 0.125, "run_stop", None, {"status": "success"}))
    return "".join(
        f":::MLL {at:.3f} {key}: {json.dumps({'value': value, 'metadata': {**more, 'lineno': 7, 'file': 'train.py'}})}\n"
        for at, key, value, more in events
    )


# ---- tf_cnn_benchmarks ------------------------------------------------------------------------

TF = made("tf")


# ---- Horovod ----------------------------------------------------------------------------------

HOROVOD = made("horovod")


# ---- onnxruntime_perf_test --------------------------------------------------------------------

ORT = made("ort")


# ---- training logs ----------------------------------------------------------------------------

DLL = made("dll")


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
    f"LOG Mon Nov 14 21:27:4{i} 2022 - (0, {i}) step_loss : 4.{i} learning_rate : 1e-07 throughput : {i}.5\n"
    for i in range(1, 5)
)


NEURON_HEAD = "Namespace(batch_size=2, grad_accum_usteps=512, max_steps=9, steps_this_run={})\n"


SPEED = "".join(
    f"INFO:root:Epoch[{e}] Batch [{b}-{b + 20}]\tSpeed: 54{e}.{b} samples/sec\taccuracy=0.00{e}\n"
    + ("" if b < 40 else f"INFO:root:Epoch[{e}] Train-accuracy=0.1{e}\nINFO:root:Epoch[{e}] Time cost=47.5\n")
    for e in range(2)
    for b in (20, 40)
)


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
            "loss = 6.5, step = 100",
            "global_step/sec: 3.5",
            "examples/sec: 3584",
            "loss = 5.5, step = 300 (57 sec)",
            "global_step/sec: 3.6",
            "examples/sec: 3686.4",
            "Loss for final step: 5.25.",
            "Finished training up to step 300. Elapsed seconds 142.",
            "Saving dict for global step 300: global_step = 300, loss = 3.5, top_1_accuracy = 0.25",
        ]
    )
)


BERT = "".join(
    f"INFO:tensorflow:{line}\n{GLOG.format(1)}{line}\n"
    for line in (
        "loss = 5.9, step = 0",
        "global_step/sec: 1.11684",
        "loss = 5.8, step = 100 (89.5 sec)",
        "Loss for final step: 5.75.",
        "Total Training Time = 1000.00 for Sentences = 60000",
        "Total Training Time W/O Overhead = 900.00 for Sentences = 58500",
        "Throughput Average (sentences/sec) with overhead = 60.00",
        "Throughput Average (sentences/sec) = 65.00",
    )
)


FAIRSEQ = made("fairseq")


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
    return "".join(row.format(prefix, i, 4, i * 128, 500 + i, i, 10.5 - i) for i in range(1, last + 1))


DEEPSPEED = "".join(
    f"[2024-03-07 15:27:0{i},646] [INFO] [timer.py:260:stop] epoch=0/micro_step={i}0/global_step={i}0,"
    f" RunningAvgSamplesPerSec={'-inf' if i == 1 else f'58.{i}'}, CurrSamplesPerSec=61.{i},"
    " MemAllocated=6.01GB, MaxMemAllocated=19.52GB\n"
    for i in range(1, 4)
)


HF = made("hf")


TRAININGS = {
    "dllogger": DLL,
    "dllogger units": DLL_UNITS,
    "dllogger json": DLLL,
    "neuron": NEURON_HEAD.format(4) + NEURON,
    "mxnet": SPEED,
    "mxnet gluon": GLUON,
    "tensorflow": ESTIMATOR,
    "nvidia-bert-tensorflow": BERT,
    "fairseq": FAIRSEQ,
    "fairseq json": FAIRSEQ_JSON,
    "megatron": megatron(),
    "deepspeed": DEEPSPEED,
    "hf-trainer": HF,
}
