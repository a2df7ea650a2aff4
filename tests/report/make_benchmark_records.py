"""Writes a made-up study of benchmarks: SYNTHETIC records of invented systems. Nothing is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from make_records import HOSTILE, make_record, provenance, write_records

from factories import bench_cell, infer_cell, ingest_record, log_metric, log_run, train_cell
from transect.domain.cell import Cell
from transect.domain.record import LogPoint, MetricValue, Record

# Threads: B/s and FLOP/s of the machine here.
MEMORY = {1: 10e9, 2: 16e9, 4: 20e9}
PEAK = {1: 50e9, 2: 100e9, 4: 190e9}
# GFLOP/s of a run that its own log contradicts.
IMPOSSIBLE = 98765.0

_HERE = provenance(system={"name": "riverbed", "description": "", "interconnect": ""})


def _run(file: str, benchmark: str, metrics: list[dict[str, Any]], *, line: int = 3, **fields: Any) -> dict[str, Any]:
    known = {name: fields.pop(name) for name in ("variant", "status", "reason") if name in fields}
    return log_run(f"/somewhere/logs/{file}", benchmark, *metrics, line=line, **known, parameters=fields)


def _hpl(file: str, gflops: float, **more: Any) -> dict[str, Any]:
    metrics = [log_metric("gflops", gflops, "GFLOP/s", "flops", 1e9), log_metric("time", 12.5, "s", "benchmark_time")]
    return _run(file, "hpl", metrics, variant="netlib", N=40000, NB=192, P=2, Q=4, **more)


def _stream(file: str, threads: int, triad: float) -> dict[str, Any]:
    metrics = [
        log_metric(f"rate-{kernel}", triad * scale, "MB/s", "memory_bandwidth", 1e6, phase=kernel)
        for kernel, scale in (("copy", 1.1), ("triad", 1.0))
    ]
    return _run(file, "stream", metrics, threads_counted=threads, array_size=80_000_000)


def _bude(file: str, gflops: float, **parameters: int) -> dict[str, Any]:
    metrics = [log_metric("gflops", gflops, "GFLOP/s", "kernel_flops", 1e9)]
    return _run(file, "minibude", metrics, variant="omp", **parameters)


def _io500(file: str, scale: float, score: float) -> dict[str, Any]:
    metrics = [
        log_metric(phase, value * scale, "GiB/s", "storage_bandwidth", 2**30, phase=phase)
        for phase, value in (
            ("ior-easy-write", 3.25),
            ("ior-hard-write", 0.5),
            ("ior-easy-read", 8.75),
            ("ior-hard-read", 4.5),
        )
    ] + [
        log_metric(phase, value * scale, "kIOPS", "metadata_rate", 1e3, phase=phase)
        for phase, value in (
            ("mdtest-easy-write", 52.5),
            ("mdtest-hard-write", 12.0),
            ("find", 640.0),
            ("mdtest-easy-stat", 310.0),
            ("mdtest-hard-delete", 13.0),
        )
    ]
    metrics.append(log_metric("score", score, "1", "io500_score"))
    return _run(file, "io500", metrics, nodes=10, variant="standard")


def _logs() -> Record:
    runs = [
        _hpl("aster/hpl.out", 151.0),
        _hpl("birch/hpl.out", 402.5),
        _hpl("birch/hpl.out", 380.0, line=40),
        _hpl(
            "birch/late.out",
            IMPOSSIBLE,
            status="invalid",
            reason=f"the log prints {IMPOSSIBLE} GFLOP/s, but its work over its time of 12.5 s is 412 GFLOP/s",
        ),
        _run("birch/cut.out", "hpl", [], status="truncated", reason="no result " + HOSTILE, variant="netlib"),
        _hpl("<b>cedar<i>.out", 90.0, status="invalid", reason="residual " + HOSTILE),
        _bude("aster/bude.out", 33.0, ppwi=1, wgsize=64),
        _bude("birch/bude.out", 71.0, ppwi=8, wgsize=1),
        *(_stream(f"birch/stream-{threads}.out", threads, 12_000.0 * threads**0.5) for threads in (1, 2, 8)),
        _io500("aster/io500.txt", 1.0, 11.5),
        _io500("birch/io500.txt", 2.0, 23.0),
        _io500("birch/io500-worse.txt", 1.5, 17.0),
    ]
    return ingest_record(*runs, status_counts={"ok": 10, "invalid": 2, "truncated": 1})


def _bench(cell: Cell, name: str, values: dict[str, float]) -> Record:
    metrics = [
        MetricValue.of(
            name, value, label, LogPoint(series=label, precision="fp32" if label.startswith("sgemm") else None)
        )
        for label, value in values.items()
    ]
    return make_record(cell, metrics, provenance=_HERE)


def _cells() -> list[Record]:
    """Cells whose place below the roof is easy to work out by hand."""
    counts = {"flops_per_step": 2e8, "bytes_per_step": 1e7, "global_batch": 64}
    found = []
    for threads, over in ((1, False), (2, False), (3, False), (4, True)):
        cell = train_cell(workload="digits-cnn", batch=64, threads=threads)
        found.append(
            make_record(
                cell,
                {
                    "step_time": 0.01,
                    "samples_per_second": 6400.0,
                    "equality_ratio": 0.1,
                    "accuracy": 0.97,
                    "time_to_quality": 3.0,
                },
                details={**counts, "over_subscribed": over},
                provenance=_HERE,
            )
        )
    # Intensity 1 FLOP/B: 10 GFLOP/s are allowed with one thread, 4.1 are reached.
    cell = infer_cell(workload="digits-cnn", exporter="torch-dynamo", batch=8)
    found.append(
        make_record(
            cell,
            {"latency": 1e6 / 4.1e9, "throughput": 8 * 4.1e9 / 1e6, "top1_agreement": 1.0},
            details={"flops_per_run": 1e6, "bytes_per_run": 1e6},
            provenance=_HERE,
        )
    )
    return found


def write_benchmark_study(root: Path) -> Path:
    """Write `root/benchmarks`: bench cells over threads and nodes, logs, and cells to bound."""
    study = root / "benchmarks"
    records = [_logs(), *_cells()]
    for threads in MEMORY:
        for repeat in range(2):
            where: dict[str, Any] = {"stage": "bench", "threads": threads, "repeat": repeat}
            memory = {"copy_best": MEMORY[threads] * (1 - repeat / 50), "copy_median": MEMORY[threads] * 0.9}
            records += [
                _bench(Cell.of(benchmark="memory-bandwidth-probe", **where), "memory_bandwidth", memory),
                _bench(
                    Cell.of(benchmark="matrix-multiply-probe", **where),
                    "flops",
                    {"sgemm_best": PEAK[threads] * (1 - repeat / 50)},
                ),
            ]
    for nodes in (1, 2):
        cell = bench_cell("hpl", nodes=nodes, ranks_per_node=2)
        records.append(_bench(cell, "flops", {"gflops": 80e9 * nodes**0.9}))
    return write_records(study, *records)
