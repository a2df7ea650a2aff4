"""Writes a made-up study: SYNTHETIC records for tests of the report. No number was measured."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Where a person runs this file, nobody else has put it there.
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

from factories import (
    bench_cell,
    infer_cell,
    ingest_record,
    log_metric,
    log_run,
    make_record,
    provenance,
    train_cell,
    write_records,
)
from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Samples, Status

# Text that would run, break out of a script block or end a line if it were not escaped.
HOSTILE = (
    "</script><script>window.HACKED=1</script><img src=x onerror='window.HACKED=2'>"
    "\u2028\u2029 ]]> {{ 7*7 }} <!-- \x1b[31mred\x1b[0m \x00 &amp; <b>bold</b>"
)

TARGETS = {"iris-mlp": 0.95, "digits-cnn": 0.96}
SPEEDS = {
    ("numpy", "single"): 1.0,
    ("numpy", "mpi-allreduce"): 0.95,
    ("torch", "single"): 1.6,
    ("torch", "ddp-gloo"): 1.45,
    ("tensorflow", "single"): 1.1,
    ("keras", "single"): 0.7,
    ("go", "mpi-sendrecv"): 1.05,
}


def _train(
    rng: random.Random, workload: str, framework: str, strategy: str, ranks: int, repeat: int, folder: Path
) -> Record:
    cell = train_cell(framework, repeat, workload=workload, strategy=strategy, ranks_per_node=ranks, batch=64)
    over = ranks > 4
    big = workload == "digits-cnn"
    noise = 1 + rng.gauss(0, 0.015)
    speed = SPEEDS[(framework, strategy)] * noise
    compute = (0.02 if big else 0.0008) / speed / min(ranks, 4)
    communication = 0.0 if ranks == 1 else (0.002 if big else 0.0003) * ranks**0.5 * noise
    feed = 0.0004 if big else 0.00005
    step_time = compute + communication + feed
    steps = 400 if big else 200
    fading = [2.2 * np.exp(-step / (steps / 6)) + 0.08 for step in range(steps)]
    jitter = [1e-6 * rng.gauss(0, 1) * (1 + step / 50) for step in range(steps)]
    loss = [value + move for value, move in zip(fading, jitter, strict=True)]
    tolerance = [1e-5 + 4e-5 * step / steps for step in range(steps)]
    ratio = max(abs(a) / b for a, b in zip(jitter, tolerance, strict=True))
    times = [step_time * (1 + abs(rng.gauss(0, 0.05))) for _ in range(steps)]
    reached = framework != "keras" or repeat != 1 or workload != "iris-mlp"
    accuracy = 0.973 + rng.gauss(0, 0.003) if reached else 0.93
    share = 0.6 if framework == "torch" else 0.62
    metrics = {
        "samples_per_second": 64 / step_time,
        "step_time": step_time,
        "compute_time": compute,
        "communication_time": communication,
        "input_time": feed,
        "communication_share": communication / step_time,
        "first_step_time": step_time * 9,
        "startup_time": 1.9,
        "train_time": step_time * steps * 1.1,
        "steps_to_quality": steps * share,
        "final_loss": loss[-1],
        "accuracy": accuracy,
        "accuracy_ci_low": accuracy - 0.02,
        "accuracy_ci_high": min(1.0, accuracy + 0.015),
        "parameters": 19_000 if big else 131,
        "gradient_bytes": 76_000 if big else 524,
        "peak_memory": 2.1e8,
        "equality_ratio": ratio,
        "loss_deviation": max(abs(value) for value in jitter),
    }
    if reached:
        metrics["time_to_quality"] = step_time * steps * share * 1.1
    series = {
        "step_time": times,
        "compute_time": [compute] * steps,
        "communication_time": [communication] * steps,
        "input_time": [feed] * steps,
        "loss": loss,
        "reference_loss": fading,
        "loss_tolerance": tolerance,
    }
    samples = {}
    if big:
        target = folder / "train" / cell.id / "samples.npz"
        target.parent.mkdir(parents=True, exist_ok=True)
        np.savez(target, **{name: np.asarray(values) for name, values in series.items()})
    for name, values in series.items():
        unit = "s" if name.endswith("_time") else "1"
        place: dict[str, Any] = {"file": "samples.npz", "key": name} if big else {"values": values}
        samples[name] = Samples(unit=unit, count=steps, **place)
    return make_record(
        cell,
        metrics,
        samples=samples,
        details={
            "over_subscribed": over,
            "cores": 4,
            "warmup_steps": 20,
            "quality": {"metric": "accuracy", "target": TARGETS[workload], "reached": reached},
            "reference": "reference-cell~00000000",
            "tolerance": {"precision": "fp32", "rule": "16 eps x (1 + step) x |loss|"},
            "flops_per_step": (9e7 if big else 6e4) / ranks,
            "bytes_per_step": (3e6 if big else 2e4) / ranks,
            "communication_bytes_per_step": 1e5,
            "messages_per_step": 2,
            "global_batch": 64,
            "disturbed": framework == "go" and repeat == 2,
            "guard": {"foreign": 0},
        },
        parameters={"learning_rate": 0.1, "seed": 17 + repeat, "epochs": 10},
        provenance=provenance(framework),
    )


def _infer(
    rng: random.Random, workload: str, runtime: str, exporter: str | None, batch: int, threads: int, repeat: int
) -> Record:
    cell = infer_cell(runtime, repeat, workload=workload, exporter=exporter, batch=batch, threads=threads)
    base = {"torch-eager": 9e-5, "python": 2e-5, "rust": 1.95e-5}[runtime]
    cost = (base + 4e-6 * batch / threads**0.7) * (1 + rng.gauss(0, 0.01))
    values = [cost * (1 + abs(rng.gauss(0, 0.06)) + (rng.random() > 0.98)) for _ in range(300)]
    median = float(np.median(values))
    metrics = {
        "latency": median,
        "latency_p95": float(np.quantile(values, 0.95)),
        "throughput": batch / median,
        "session_time": 0.012,
        "max_abs_difference": 3e-7,
        "top1_agreement": 1.0,
    }
    if runtime != "torch-eager":
        metrics |= {"bind_time": 2e-6, "copy_time": 1e-6}
    return make_record(
        cell,
        metrics,
        samples={"latency": Samples(unit="s", values=values, count=len(values))},
        details={
            "session_options": {"intra_op_num_threads": threads},
            "runtime_version": "1.20.0",
            "provider_used": "CPUExecutionProvider",
            "flops_per_run": 4e5 * batch,
            "bytes_per_run": 8e4 + 300 * batch,
            "stop_reason": "interval" if repeat else "time cap",
        },
        provenance=provenance("torch" if runtime == "torch-eager" else "onnxruntime"),
    )


def _export(workload: str, exporter: str, difference: float) -> Record:
    cell = Cell.of(stage="export", workload=workload, framework="torch", exporter=exporter)
    return make_record(
        cell,
        {
            "model_bytes": 81_234,
            "opset": 18,
            "ir_version": 10,
            "operators": 14,
            "export_time": 0.8,
            "max_abs_difference": difference,
            "max_rel_difference": 10 * difference,
            "top1_agreement": 1.0 if difference < 1e-5 else 0.97,
        },
        details={
            "operators_by_type": {"Conv": 2, "Relu": 3, "Gemm": 2, "MaxPool": 2, "Reshape": 5},
            "initialisers": 8,
            "initialisers_shared": False,
            "dynamic_batch": True,
            "checker": "passed",
            "tolerance": 1e-5,
        },
        provenance=provenance("torch"),
    )


def _hardware(rng: random.Random) -> list[Record]:
    records = []
    for threads in (1, 2, 4):
        for repeat in range(3):
            noise = 1 + rng.gauss(0, 0.01)
            cell = bench_cell("memory-bandwidth-probe", threads=threads, repeat=repeat)
            values = [
                MetricValue.of("memory_bandwidth", 9e9 * threads**0.6 * noise * scale, label)
                for label, scale in (("copy", 1.0), ("triad", 1.1))
            ]
            records.append(make_record(cell, values))
            cell = bench_cell("matrix-multiply-probe", threads=threads, repeat=repeat)
            values = [MetricValue.of("flops", 6e10 * threads**0.95 * noise, "fp32")]
            records.append(make_record(cell, values))
    given = {"variant": "WR11C2R4", "parameters": {"N": 8000, "NB": 192}}
    runs = [
        log_run("hpl.out", "hpl", log_metric("gflops", value, "Gflop/s", "flops", 1e9), **given, **ended)
        for value, ended in (
            (151.0, {}),
            (987.0, {"status": "invalid", "reason": "residual above the threshold " + HOSTILE}),
        )
    ]
    return [*records, ingest_record(*runs, source="hpl-logs")]


def write_synthetic_study(root: Path, *, seed: int = 1) -> Path:
    """Write `root/synthetic/STAGE/CELL/record.json` for all stages; return that folder."""
    rng, study = random.Random(seed), root / "synthetic"
    records: list[Record] = []
    for workload in TARGETS:
        for framework, strategy in SPEEDS:
            if (framework, workload) == ("go", "iris-mlp"):
                continue
            for ranks in (1,) if strategy == "single" else (1, 2, 4, 8):
                for repeat in range(3):
                    records.append(_train(rng, workload, framework, strategy, ranks, repeat, study))
        records.append(
            make_record(
                Cell.of(
                    stage="reference",
                    workload=workload,
                    framework="numpy",
                    strategy="single",
                    batch=64,
                    precision="fp64",
                ),
                {"final_loss": 0.08},
            )
        )
        records.append(make_record(Cell.of(stage="dataset", workload=workload)))
        records.append(_export(workload, "torch-dynamo", 4e-7))
        records.append(_export(workload, "torchscript", 4e-7 if workload == "iris-mlp" else 3e-3))
        for runtime, exporter in (("torch-eager", None), ("python", "torch-dynamo"), ("rust", "torch-dynamo")):
            for batch, threads in ((1, 1), (8, 1), (64, 1), (64, 2), (64, 4)):
                for repeat in range(2 if workload == "iris-mlp" else 3):
                    records.append(_infer(rng, workload, runtime, exporter, batch, threads, repeat))
    records += _hardware(rng)
    records += [
        make_record(
            train_cell("mxnet", workload="iris-mlp", strategy="kvstore", ranks_per_node=2, batch=64),
            {"samples_per_second": 9e9, "time_to_quality": 1e-9, "equality_ratio": 41.0, "accuracy": 0.99},
            status=Status.FAILED,
            cause=Cause.WRONG_RESULT,
            message="loss leaves the tolerance at step 3 " + HOSTILE,
            log_tail="step 1 ok\nstep 2 ok\n" + HOSTILE,
        ),
        make_record(
            train_cell("tensorflow", workload="digits-cnn", strategy="multiworker", ranks_per_node=2, batch=64),
            status=Status.FAILED,
            cause=Cause.OUT_OF_MEMORY,
            message="killed by the kernel at 4 GiB",
            log_tail="slurmstepd: error: Detected 1 oom_kill event",
            provenance={},
        ),
        make_record(
            infer_cell("c", workload="digits-cnn", provider="cuda"),
            status=Status.SKIPPED,
            cause=Cause.MISSING_DEPENDENCY,
            message="no CUDA device here",
            provenance=provenance("onnxruntime", kernel="6.6.0-other", host="synthetic-node-2"),
        ),
    ]
    write_records(study, *records)
    broken = study / "train" / "broken.cell~ffffffff" / "record.json"
    broken.parent.mkdir(parents=True)
    broken.write_text('{"study": "<script>window.HACKED=3</script>"', encoding="utf-8")
    return study
