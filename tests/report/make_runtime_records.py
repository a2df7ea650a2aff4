"""Writes a made-up study of runtimes: SYNTHETIC records. No number was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from make_records import HOSTILE, make_record, provenance, write_records

from factories import infer_cell
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Samples, Status

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
    complete: bool = True,
    samples: Sequence[float] = (),
    calls: Sequence[float] = (),
    metrics: dict[str, float] | None = None,
    details: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    **axes: Any,
) -> Record:
    """Make one synthetic run. `complete=False`: a record of an earlier version, which lacks most details.

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
    if complete:
        values |= {
            "end_to_end_time": latency * 1.075,
            "first_result_time": 0.08,
            "peak_memory": 9e7,
            "program_bytes": 2.4e7,
            "max_rel_difference": 2e-6,
            "nonfinite_outputs": 0,
        }
        facts |= {"options_not_set": [], "run_includes": [], "language_version": "X 1.2"}
    if complete and not baseline:
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


WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": f"3 elements are NaN {HOSTILE}"}
SKIPPED = {"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "no CUDA device"}
CRASH = {"status": Status.FAILED, "cause": Cause.CRASH, "message": "signal 11 in the session"}


def many(*records: list[Record]) -> list[Record]:
    return [record for part in records for record in part]


def matrix() -> list[Record]:
    return [
        *runs("cpp", 1e-4),
        *runs("rust", 1.0003e-4),
        *runs("python", 2e-4),
        *runs("torch-eager", 5e-4),
        infer_record("go", 1.0, fields=CRASH),
        infer_record("java", 1e-9, fields=WRONG),
        *runs("cpp", 3e-4, exporter="torchscript"),
        infer_record("python", 1.0, provider="cuda", fields=SKIPPED),
        infer_record("cpp", 1.0, provider="cuda", fields=SKIPPED),
    ]


def under_load(**changes: Any) -> list[Record]:
    loads = (100.0, 4000.0, 8000.0, 16000.0)
    return [
        load_record(name, load, 1, capacity, **changes)
        for name, capacity in (("cpp", 9000.0), ("python", 5000.0))
        for load in loads
    ]


def sizes(*names: str) -> list[Record]:
    """Make models that hand 1 and 1000 numbers on, in C and others."""
    latencies = {"c": 1e-6, "python": 5e-6, "rust": 1.001e-6}
    return many(
        *(
            runs(name, latencies[name] * (1 + size / 100), workload=f"identity-{word}", exporter="onnx")
            for word, size in (("1", 1), ("1k", 1000))
            for name in names
        )
    )


def other_options() -> list[Record]:
    basic = runs("rust", 2e-4, options="basic", details={"session_options": {"graph_optimization_level": "basic"}})
    unset = runs("cpp", 1.1e-4, options="language-defaults", details={"session_options": {}})
    return [*runs("cpp", 1e-4), *runs("rust", 1e-4), *basic, *unset]


def conditions() -> list[Record]:
    differing = {"session_options_seen": seen(enable_mem_pattern=False), "options_not_set": ["enable_mem_pattern"]}
    return [
        *runs("cpp", 1e-4),
        *runs("c", 1e-4),
        *runs("java", 1e-4, details=differing),
        *runs("go", 1e-4, complete=False),
        *runs("torch-eager", 1e-3),
    ]


def profiled() -> list[Record]:
    def ratio(runtime: str, *values: float, workload: str = "tickets") -> list[Record]:
        return [
            infer_record(runtime, 1e-4, n, workload=workload, details={"run_over_profiler": value})
            for n, value in enumerate(values)
        ]

    return [
        *ratio("cpp", 1.01, 1.02, 1.9),
        *ratio("go", 1.5),
        *runs("c", 1e-4, 1),
        *ratio("go", 1.25, 1.25, workload="images"),
    ]


def fourteen_models() -> list[Record]:
    return many(*(runs(name, 1e-4, 1, workload=f"model-{n:02}") for n in range(14) for name in ("cpp", "c")))


def with_options(name: str, latency: float, options: str, **changed: Any) -> list[Record]:
    """Repeats with another set of options, on two threads."""
    given = {"session_options": {**EQUAL, "intra_op_num_threads": 2, **changed}}
    return runs(name, latency, options=options, threads=2, details=given)


def thesis_runs(equal: float = 1.01e-4, thesis: float = 2.1e-4) -> list[Record]:
    """Rust and C++ with equal options, with the thesis's, and Rust with one of them at a time."""
    return [
        *with_options("cpp", 1e-4, "equal"),
        *with_options("rust", equal, "equal"),
        *with_options("cpp", 1.02e-4, "language-defaults"),
        *with_options("rust", thesis, "thesis-rust", intra_op_num_threads=1, graph_optimization_level="basic"),
        *with_options("rust", 1.9e-4, "one-thread", intra_op_num_threads=1),
        *with_options("rust", 1.0102e-4, "basic", graph_optimization_level="basic"),
    ]


def write_runtime_study(root: Path) -> Path:
    """Write `root/runtimes`: languages, exporters, option sets, load, identity models, failures."""
    records = [
        *matrix(),
        *runs("javascript", 3e-4, samples=[3e-4 * (1 + n / 4000) for n in range(400)]),
        *runs("python", 3e-4, batch=8),
        *under_load(),
        *sizes("c", "python", "rust"),
        *other_options(),
    ]
    # Some of these are of the same cell.
    return write_records(root / "runtimes", *{record.cell_id: record for record in records}.values())
