"""Writes a made-up study of runtimes: SYNTHETIC records. No number was measured."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from make_records import HOSTILE, make_record, provenance, write_records

from factories import infer_cell
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Samples, Status

# Microseconds that a call costs, beside the model itself.
CALLS = {
    "c": 0.8,
    "cpp": 0.85,
    "rust": 0.9,
    "go": 2.4,
    "java": 3.1,
    "javascript": 6.0,
    "python": 5.0,
    "python-iobinding": 9.0,
    "torch-eager": 90.0,
}
EQUAL = {
    "intra_op_num_threads": 1,
    "inter_op_num_threads": 1,
    "execution_mode": "sequential",
    "graph_optimization_level": "all",
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "session.intra_op.allow_spinning": "1",
    "session.inter_op.allow_spinning": "1",
}
KERNELS = ["MatMul CPUExecutionProvider", "FusedGemm CPUExecutionProvider"]
VERSION = "1.29.0"


def seen(**changes: Any) -> dict[str, Any]:
    """What ONNX Runtime's own log says it had."""
    return {**EQUAL, "intra_op_affinity": "", "inter_op_affinity": "", **changes}


def infer_record(
    runtime: str,
    latency: float,
    repeat: int = 0,
    *,
    workload: str = "tickets",
    told: bool = True,
    samples: Sequence[float] = (),
    calls: Sequence[float] = (),
    metrics: dict[str, float] | None = None,
    details: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    **axes: Any,
) -> Record:
    """Make one synthetic run. `told=False`: a record from before most was told.

    `samples` are those of Run, `calls` of bind, Run and copy together.
    """
    baseline = runtime == "torch-eager"
    given = {"exporter": None if baseline else "torch-dynamo", "batch": 1, "threads": 1, **axes}
    cell = infer_cell(runtime, repeat, workload=workload, **given)
    values = {
        "latency": latency,
        "throughput": cell.batch / latency,
        "session_time": 0.012,
        "bind_time": latency / 20,
        "copy_time": latency / 40,
        "max_abs_difference": 3e-7,
        "top1_agreement": 1.0,
    }
    facts: dict[str, Any] = {
        "session_options": {} if baseline else {**EQUAL, "intra_op_num_threads": cell.threads},
        "runtime_version": "2.9.0" if baseline else VERSION,
        "provider_used": cell.provider,
        "stop_reason": "interval-reached",
    }
    if told:
        values |= {
            "end_to_end_time": latency * 1.075,
            "first_result_time": 0.08,
            "peak_memory": 9e7,
            "program_bytes": 2.4e7,
            "max_rel_difference": 2e-6,
            "nonfinite_outputs": 0,
        }
        facts |= {"options_not_set": [], "run_includes": [], "language_version": "X 1.2"}
    if told and not baseline:
        facts |= {
            "session_options_seen": seen(intra_op_num_threads=cell.threads),
            "kernels": {"count": len(KERNELS), "names": KERNELS, "digest": "ab12"},
            "library": "libonnxruntime.so.1.29.0",
            "library_size": 22_000_000,
        }
    series = {"latency": list(samples), "end_to_end_time": list(calls)}
    kept = {name: Samples(unit="s", values=drawn, count=len(drawn)) for name, drawn in series.items() if drawn}
    return make_record(
        cell,
        {**values, **(metrics or {})},
        samples=kept,
        details={**facts, **(details or {})},
        **{"provenance": provenance("torch" if baseline else "onnxruntime"), **(fields or {})},
    )


def runs(runtime: str, latency: float, amount: int = 6, **more: Any) -> list[Record]:
    """Repeats that differ by a thousandth each: the noise floor is half a percent at most."""
    return [infer_record(runtime, latency * (1 + n / 1000), n, **more) for n in range(amount)]


def load_record(runtime: str, load: float, sessions: int, capacity: float, repeat: int = 0, **axes: Any) -> Record:
    """Make one synthetic run under load, of a runtime that serves `capacity` requests a second."""
    cell = Cell.of(
        stage="infer",
        **{"workload": "tickets", "exporter": "torch-dynamo", **axes},
        runtime=runtime,
        provider="cpu",
        batch=1,
        load=load,
        sessions=sessions,
        repeat=repeat,
    )
    use = load / capacity
    served = int(min(load, capacity) * 10)
    middle = sessions / capacity * (1 / (1 - use) if use < 0.95 else 400 * use)
    metrics = {
        "load_latency": middle,
        "session_time": 0.012,
        "served_rate": min(load, capacity),
        "served_share": min(1.0, 1 / use),
        "max_abs_difference": 3e-7,
    }
    if served >= 400:
        metrics["load_latency_p95"] = 3 * middle
    if served >= 2000:
        metrics["load_latency_p99"] = 5 * middle
    return make_record(cell, metrics, details={"runtime_version": VERSION, "provider_used": "cpu"})


def _timed(rng: random.Random, runtime: str, model_s: float, repeat: int, **axes: Any) -> Record:
    batch, threads = axes.get("batch", 1), axes.get("threads", 1)
    exporter = 1.2 if axes.get("exporter") == "torchscript" else 1.0
    slow = {"thesis-rust": 2.1, "thesis-cpp": 1.02, "one-thread": 1.9, "basic": 1.1}
    base = (CALLS[runtime] * 1e-6 + exporter * model_s * batch / threads**0.7) * (
        slow.get(axes.get("options", ""), 1.0)
    )
    base *= 1 + rng.gauss(0, 0.004)
    noise = np.abs([rng.gauss(0, 0.04) for _ in range(400)])
    tail = [rng.paretovariate(3) - 1 if rng.random() > 0.97 else 0.0 for _ in range(400)]
    samples = base * (1 + noise + np.array(tail) * (4 if runtime in ("java", "go") else 1))
    changes = {
        "thesis-rust": {"intra_op_num_threads": 1, "graph_optimization_level": "basic"},
        "one-thread": {"intra_op_num_threads": 1},
        "basic": {"graph_optimization_level": "basic"},
    }.get(axes.get("options", ""), {})
    details: dict[str, Any] = {"session_options": {**EQUAL, "intra_op_num_threads": threads, **changes}}
    if axes.get("options") == "thesis-cpp":
        details["session_options"] = {}
    if runtime == "javascript":
        details["run_includes"] = ["bind", "copy"]
    if runtime == "java":
        details["options_not_set"] = ["session.inter_op.allow_spinning"]
        details["session_options_seen"] = seen(
            **{"intra_op_num_threads": threads, "session.inter_op.allow_spinning": "0"}
        )
    median = float(np.median(samples))
    metrics = {
        "latency_p95": float(np.quantile(samples, 0.95)),
        "first_result_time": {"java": 0.31, "javascript": 0.11, "python": 0.16, "torch-eager": 1.9}.get(runtime, 0.03),
        "peak_memory": 4e7 * (1 + CALLS[runtime]),
        "program_bytes": 2.2e7 * (1 + CALLS[runtime] / 4),
    }
    if runtime == "javascript":
        metrics |= {"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": median}
    whole = 1.0 if runtime == "javascript" else 1.075
    return infer_record(
        runtime,
        median,
        repeat,
        samples=samples.tolist(),
        metrics=metrics,
        calls=(whole * samples).tolist(),
        details=details,
        **axes,
    )


def write_runtime_study(root: Path, *, seed: int = 5, repeats: int = 6) -> Path:
    """Write `root/runtimes`: languages, exporters, option sets, load, identity models, failures."""
    rng, study = random.Random(seed), root / "runtimes"
    records: list[Record] = []
    for repeat in range(repeats):
        for runtime in CALLS:
            onnx = runtime != "torch-eager"
            for exporter in ("torch-dynamo", "torchscript") if onnx else (None,):
                for batch, threads in ((1, 1), (8, 1), (64, 1), (1, 2)):
                    records.append(_timed(rng, runtime, 6e-5, repeat, exporter=exporter, batch=batch, threads=threads))
            if onnx:
                for name, model_s in (("1", 1e-7), ("1k", 3e-7), ("1m", 1.6e-4)):
                    records.append(_timed(rng, runtime, model_s, repeat, workload=f"identity-{name}", exporter="onnx"))
                records.append(_timed(rng, runtime, 9e-4, repeat, workload="images"))
        for options in ("thesis-rust", "one-thread", "basic"):
            records.append(_timed(rng, "rust", 6e-5, repeat, options=options, threads=2))
        records.append(_timed(rng, "cpp", 6e-5, repeat, options="thesis-cpp", threads=2))
    for runtime, capacity in (("cpp", 9000.0), ("python", 4000.0), ("javascript", 5000.0)):
        for sessions in (1, 2):
            for load in (20.0, 500.0, 2000.0, 4000.0, 8000.0, 16000.0):
                records.append(load_record(runtime, load, sessions, capacity * sessions**0.6))
    bad = {
        "status": Status.FAILED,
        "cause": Cause.WRONG_RESULT,
        "message": "output 'output' has 3 NaN or infinite elements too many " + HOSTILE,
    }
    records += [
        infer_record("javascript-wasm", 1e-9, metrics={"nonfinite_outputs": 3}, fields=bad),
        infer_record(
            "cpp",
            1.0,
            provider="cuda",
            fields={"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "cuda: no device (cuInit 100)"},
        ),
        infer_record(
            "python",
            1.0,
            provider="cuda",
            fields={"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "cuda: no device (cuInit 100)"},
        ),
        infer_record(
            "javascript-wasm",
            1.0,
            workload="images",
            fields={"status": Status.FAILED, "cause": Cause.CRASH, "message": "memory access out of bounds"},
        ),
    ]
    return write_records(study, *records)
