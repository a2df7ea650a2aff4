"""Made-up records of trainings over ranks: SYNTHETIC. No number was measured."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from make_records import make_record, provenance, write_records

from factories import bench_cell, train_cell
from transect.domain.cell import Cell
from transect.domain.record import LogPoint, MetricValue, Record

PER_RANK, SAMPLES, CORES = 4, 112, 4
GRADIENT_BYTES = 3_432.0
_SUMMING = ("published-allreduce", "published-sendrecv")


def rank_record(
    framework: str = "numpy",
    strategy: str = "mpi-allreduce",
    ranks: int = 2,
    repeat: int = 0,
    *,
    computing: float = 1e-3,
    waited: float = 1e-4,
    cores: int = CORES,
    loss: float = 0.4,
    steps_to_quality: float | None = None,
    changes: dict[str, float] | None = None,
    **axes: Any,
) -> Record:
    """Make one run with 4 samples on each rank that trains; a batch of its own is one of `axes`."""
    replicas = ranks - (strategy == "published-sendrecv")
    if strategy in _SUMMING:
        axes = {"reduce": "sum"} | axes
    cell = train_cell(
        framework,
        repeat,
        strategy=strategy,
        ranks_per_node=ranks,
        **{"workload": "iris-mlp", "batch": PER_RANK * replicas} | axes,
    )
    waited = waited if cell.ranks > 1 else 0.0
    step = computing + waited
    values = {
        "step_time": step,
        "samples_per_second": cell.batch / step,
        "compute_time": computing,
        "communication_time": waited,
        "communication_total_time": waited,
        "final_loss": loss,
        "communication_share": waited / step,
        "gradient_bytes": GRADIENT_BYTES,
        "accuracy": 0.9,
        "startup_time": 0.3,
        "first_step_time": 2 * step,
        "peak_memory": 6e7,
        "memory_at_rest": 5e7,
        "equality_ratio": 0.1,
        "cpu_utilisation": 0.97,
    }
    if steps_to_quality is not None:
        values |= {"steps_to_quality": steps_to_quality, "time_to_quality": steps_to_quality * step}
    reached = steps_to_quality is not None
    return make_record(
        cell,
        [MetricValue.of(name, value) for name, value in (values | (changes or {})).items()],
        parameters={"batch": PER_RANK, "learning_rate": 0.01, "warmup_steps": 0},
        provenance=provenance("numpy"),
        details={
            "over_subscribed": cell.ranks > cores,
            "global_batch": cell.batch,
            "reference_steps": 9,
            "steps_per_epoch": SAMPLES // cell.batch,
            "quality": {"metric": "accuracy", "target": 0.9, "reached": reached},
            "layout": {"replicas": replicas * cell.nodes, "model_parts": 1, "micro_batches": 1},
        },
    )


def repeated(times: int = 6, spread: float = 1e-3, **how: Any) -> list[Record]:
    """Make repeats whose times differ by a thousandth each."""
    computing, waited = how.pop("computing", 1e-3), how.pop("waited", 1e-4)
    return [
        rank_record(repeat=n, computing=computing * (1 + spread * n), waited=waited * (1 + spread * n), **how)
        for n in range(times)
    ]


def probe(alpha: float = 2e-6, beta: float = 4e9, **axes: Any) -> Record:
    """Make a network probe of two ranks whose messages lie on one line."""
    cell = bench_cell("network-probe", **{"ranks_per_node": 2} | axes)
    return make_record(
        cell,
        [
            MetricValue.of(
                "message_time",
                alpha + size / beta,
                f"pingpong-{size}_median",
                LogPoint(series="pingpong_median", size=size),
            )
            for size in (0, *(4**power for power in range(1, 12)))
        ],
    )


def data_record(workload: str = "images-mlp") -> Record:
    """Make the record of generated images."""
    return make_record(
        Cell.of(stage="dataset", workload=workload),
        {},
        details={"generated": True, "source": "generated: 6 procedural textures, 80 JPEG files each"},
    )


def scaling(ranks: Iterable[int], *, serial: float = 0.2, **how: Any) -> list[Record]:
    """Make ranks that share all but a serial part: each computes p times that part longer than alone."""
    records = []
    for number in ranks:
        whole = 1.1e-3 * (serial * number + 1 - serial)
        strategy = "single" if number == 1 else how.get("strategy", "mpi-allreduce")
        others = {key: value for key, value in how.items() if key != "strategy"}
        waited = 0.1 * whole if number > 1 else 0.0
        records += repeated(strategy=strategy, ranks=number, computing=whole - waited, waited=waited, **others)
    return records


def write_rank_study(root: Path) -> Path:
    """Write `root/ranks`: both problems, all ways, a sum with its twins, batches, and Go beside numpy."""
    study = root / "ranks"
    records = [probe(), data_record(), *scaling((1, 2, 4, 8), strategy="mpi-allreduce")]
    for framework in ("numpy", "go"):
        for strategy, waited in (("mpi-sendrecv", 3e-4), ("published-allreduce", 1e-4), ("published-sendrecv", 4e-4)):
            for ranks in (2, 4, 8):
                records += repeated(3, framework=framework, strategy=strategy, ranks=ranks, waited=waited)
    for number in (1, 7, 16, 30):
        strategy = "single" if number == 1 else "mpi-allreduce"
        records += repeated(1, strategy=strategy, ranks=number, workload="images-mlp", computing=8e-3, waited=2e-3)
    for batch, steps in ((8, 900), (32, 300)):
        records += repeated(workload="iris-mlp-ce", batch=batch, steps_to_quality=steps)
    for framework, size in (("numpy", 4e8), ("go", 9e6)):
        for threads in (1, 2):
            records += repeated(
                framework=framework,
                strategy="single",
                ranks=1,
                threads=threads,
                workload="digits-cnn",
                batch=64,
                steps_to_quality=200,
                changes={"environment_bytes": size, "environment_files": size / 5e4},
            )
    for repeat in range(3):
        for loss, axes in ((0.2, {"reduce": "sum"}), (0.4, {}), (0.2 * (1 + 1e-7), {"learning_rate_rule": "linear"})):
            records.append(rank_record(repeat=repeat, ranks=4, loss=loss, workload="iris-mlp-ce", **axes))
    return write_records(study, *records)
