"""Writes a made-up study of frameworks side by side: SYNTHETIC records. No number was measured."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from make_records import make_record, provenance, write_records

from factories import train_cell
from transect.domain.record import Cause, MetricValue, Record, Status

# Framework: speed on one rank, beside numpy's.
SPEEDS = {
    "numpy": 1.0,
    "torch": 2.0,
    "tensorflow": 1.6,
    "keras-tensorflow": 1.2,
    "keras-torch": 0.8,
    "keras-jax": 1.9,
    "keras-2": 1.1,
    "mxnet": 1.97,
}
# Strategy: communication under way in ms on 2 ranks, and the share that hides (None: not told).
STRATEGIES: dict[str, tuple[float, float | None]] = {
    "mpi-allreduce": (1.0, 0.0),
    "mpi-sendrecv": (3.0, 0.0),
    "ddp-gloo": (2.0, 0.4),
    "ddp-mpi": (2.2, 0.3),
    "fsdp": (4.0, None),
    "horovod-gloo": (2.5, None),
    "horovod-mpi": (1.5, 0.2),
    "multiworker-ring": (2.8, None),
    "kvstore-dist-sync": (3.5, None),
}
OWN = {
    "torch": ("ddp-gloo", "ddp-mpi", "fsdp", "horovod-gloo", "horovod-mpi"),
    "tensorflow": ("multiworker-ring", "horovod-gloo", "horovod-mpi"),
    "keras-2": ("horovod-gloo", "horovod-mpi"),
    "mxnet": ("kvstore-dist-sync", "horovod-gloo", "horovod-mpi"),
}
BATCH, COMPUTE = 64, 0.008


def train_record(
    framework: str,
    strategy: str,
    ranks: int = 1,
    repeat: int = 0,
    *,
    workload: str = "digits-cnn",
    noise: float = 1.0,
    drop: tuple[str, ...] = (),
    over: bool = False,
    changes: dict[str, float] | None = None,
    **axes: Any,
) -> Record:
    """Make one synthetic run; `changes` replaces metrics, `drop` leaves some out."""
    cell = train_cell(
        framework, repeat, workload=workload, strategy=strategy, ranks_per_node=ranks, **{"batch": BATCH, **axes}
    )
    under_way, hidden = STRATEGIES.get(strategy, (0.0, 0.0))
    total = under_way * 1e-3 * (ranks - 1) ** 0.5 * noise
    waited = total * (1 - (hidden or 0.0))
    weak = cell.batch == BATCH * ranks
    compute = COMPUTE / SPEEDS[framework] / (1 if weak else min(ranks, 2) ** 0.9) * noise
    feed = {"files": 1e-3, "stored": 5e-5, "synthetic": 1e-6}[cell.input] * noise
    step = compute + waited + feed
    strength = ranks if cell.reduce == "sum" else 1
    loss = 0.4 / strength
    metrics = {
        "samples_per_second": (cell.batch or 1) / step,
        "step_time": step,
        "input_time": feed,
        "startup_time": 1.5,
        "first_step_time": 8 * step,
        "train_time": 500 * step,
        "final_loss": loss,
        "peak_memory": 3e8,
        "cpu_utilisation": 0.93,
        "gradient_bytes": 24_000,
        "equality_ratio": 0.02,
        "loss_deviation": 1e-7,
        "weights_deviation": 2e-7,
        "weights_equality_ratio": 0.03,
    }
    if hidden is not None:
        metrics |= {
            "compute_time": compute,
            "communication_time": waited,
            "communication_share": waited / step,
            "communication_total_time": total,
        }
        if total:
            metrics["overlap"] = 1 - waited / total
    synthetic = cell.input == "synthetic"
    if not synthetic:
        metrics |= {
            "accuracy": 0.96,
            "accuracy_ci_low": 0.94,
            "accuracy_ci_high": 0.98,
            "steps_to_quality": 400 / strength,
            "time_to_quality": 400 * step / strength,
        }
    metrics |= changes or {}
    values = [MetricValue.of(name, value) for name, value in metrics.items() if name not in drop]
    values.append(MetricValue.of("energy", 40 * step * 500, "rapl:package"))
    quality = {"metric": "accuracy", "target": 0.95, "reached": "time_to_quality" not in drop}
    return make_record(
        cell,
        values,
        parameters={"batch": BATCH, "learning_rate": 0.1},
        details={
            "over_subscribed": over,
            "global_batch": cell.batch,
            "reference_steps": 100,
            "quality": None if synthetic else quality,
            "tolerance": {"precision": cell.precision, "rule": "as measured"},
        },
        provenance=provenance(framework),
    )


def _series() -> list[tuple[str, str]]:
    return [
        (framework, strategy)
        for framework in SPEEDS
        for strategy in ("single", "mpi-allreduce", "mpi-sendrecv", *OWN.get(framework, ()))
        if framework != "keras-2" or not strategy.startswith("mpi")
    ]


def _fail(framework: str, strategy: str, ranks: int, cause: Cause, message: str) -> Record:
    cell = train_cell(framework, workload="digits-cnn", strategy=strategy, ranks_per_node=ranks, batch=BATCH)
    status = Status.SKIPPED if cause is Cause.UNSUPPORTED else Status.FAILED
    return make_record(cell, status=status, cause=cause, message=message)


def write_framework_study(root: Path, *, seed: int = 3) -> Path:
    """Write `root/frameworks`: 30 series on 1, 2 and 4 ranks, twins, failures, other kinds."""
    rng, study = random.Random(seed), root / "frameworks"

    def noise() -> float:
        return 1 + rng.gauss(0, 0.01)

    records = [
        train_record(framework, strategy, ranks, repeat, noise=noise(), over=ranks > 2)
        for framework, strategy in _series()
        for ranks in ((1,) if strategy == "single" else (1, 2, 4))
        for repeat in range(3)
    ]
    for repeat in range(3):
        records += [
            train_record("torch", "single", 1, repeat, noise=noise(), input="synthetic"),
            train_record("torch", "single", 1, repeat, noise=noise(), input="files"),
            train_record("torch", "single", 1, repeat, noise=noise(), precision="fp64"),
            train_record("numpy", "single", 1, repeat, noise=noise(), precision="fp64"),
        ]
        for ranks in (1, 2):
            rules: tuple[dict[str, Any], ...] = (
                {"reduce": "sum"},
                {"batch": BATCH * ranks, "learning_rate_rule": "linear"},
                *([{"batch": BATCH * ranks}] if ranks > 1 else []),
            )
            records += [train_record("numpy", "mpi-allreduce", ranks, repeat, noise=noise(), **rule) for rule in rules]
    records += [
        _fail("torch", "ddp-nccl", 2, Cause.UNSUPPORTED, "NCCL needs a GPU on every rank"),
        _fail("mxnet", "kvstore-dist-async", 2, Cause.CRASH, "Segmentation fault in rank 1"),
        train_record(
            "keras-2",
            "mpi-allreduce",
            2,
            changes={
                "weights_equality_ratio": 7.0,
                "time_to_quality": 1e-6,
                "step_time": 1e-9,
                "samples_per_second": 9e9,
            },
        ),
    ]
    return write_records(study, *records)
