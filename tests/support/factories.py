"""Cells, records, plans and contexts that tests are made of: one place instead of one in each file.

A file that needs other defaults wraps these with `functools.partial`, and keeps its numbers beside its tests.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Status, write_record

# Axes of a training cell of parts that are not there.
TRAIN = {"stage": "train", "workload": "w", "framework": "f", "strategy": "s", "batch": 16}


def train_cell(framework: str = "numpy", repeat: int = 0, **axes: Any) -> Cell:
    """Return a training cell: one rank of `iris-mlp`, unless other axes are given."""
    return Cell.of(
        **{
            "stage": "train",
            "workload": "iris-mlp",
            "framework": framework,
            "strategy": "single",
            "batch": 16,
            "repeat": repeat,
            **axes,
        }
    )


def infer_cell(runtime: str = "python", repeat: int = 0, **axes: Any) -> Cell:
    """Return a cell that serves one row of `iris-mlp` on a processor, unless other axes are given."""
    return Cell.of(
        **{
            "stage": "infer",
            "workload": "iris-mlp",
            "runtime": runtime,
            "provider": "cpu",
            "batch": 1,
            "repeat": repeat,
            **axes,
        }
    )


def bench_cell(benchmark: str, options: Mapping[str, Any] | tuple[tuple[str, Any], ...] = (), **axes: Any) -> Cell:
    """Return a cell of a benchmark; its options may be a mapping."""
    return Cell.of(stage="bench", benchmark=benchmark, options=tuple(sorted(dict(options).items())), **axes)


def make_record(
    cell: Cell,
    metrics: Mapping[str, float] | list[MetricValue] | None = None,
    *,
    status: Status | str = Status.OK,
    cause: Cause | None = None,
    **fields: Any,
) -> Record:
    """Return a record of a cell; `metrics` maps registered names to values, `fields` are any of a record's."""
    if not isinstance(metrics, list):
        metrics = [MetricValue.of(name, value) for name, value in (metrics or {}).items()]
    defaults = {
        "study": "synthetic",
        "fingerprint": "synthetic",
        "started": "2026-01-01T00:00:00Z",
        "ended": "2026-01-01T00:00:10Z",
        "provenance": provenance(),
    }
    return Record(
        stage=cell.stage, cell=cell, cell_id=cell.id, status=status, cause=cause, metrics=metrics, **defaults | fields
    )


# What says nothing of its machine.
bare_record = functools.partial(make_record, provenance={})


def provenance(environment: str = "driver", **changes: Any) -> dict[str, Any]:
    """Return where a record was made: a machine that does not exist."""
    return {
        "host": "synthetic-node-1",
        "cpu_model": "Synthetic CPU 2.0 GHz",
        "sockets": 1,
        "cores": 4,
        "numa_nodes": 1,
        "memory_bytes": 16 * 2**30,
        "kernel": "6.1.0-synthetic",
        "cgroup": {"cpu_max": "400000 100000"},
        "gpus": [],
        "mpi": "Open MPI 5.0.0",
        "libraries": {"numpy": "2.1.0"},
        "environment": {"name": environment, "lock_hash": f"{environment}-0123abcd"},
        "git": {"commit": "0" * 40, "dirty": False},
        "slurm": {},
        "load_before": [0.1, 0.1, 0.1],
        "load_after": [3.9, 2.0, 1.0],
        "foreign_before": [],
        "foreign_after": [],
        "variables": {"OMP_NUM_THREADS": "1"},
        **changes,
    }


def log_metric(name: str, value: float, unit: str, registered: str, factor: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return a number as a parser tells it: `factor` times it is one of a registered metric."""
    known = MetricValue.of(registered, value * factor)
    return {
        "name": name,
        "value": value,
        "printed": f"{value:.3f}",
        "unit": unit,
        "direction": known.direction.value,
        "normalised": {"name": registered, "value": known.value, "unit": known.unit},
        **more,
    }


def log_run(file: str, benchmark: str, *metrics: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a run as a parser tells it."""
    usual = {"line": 3, "variant": "", "version": "1.0", "status": "ok", "reason": "", "parameters": {}, "warnings": []}
    return {"file": file, "benchmark": benchmark, "metrics": list(metrics), **usual, **fields}


def ingest_record(*runs: Mapping[str, Any], source: str = "logs", **details: Any) -> Record:
    """Return what reading logs gave."""
    return make_record(Cell.of(stage="ingest", source=source), details={"runs": list(runs), **details})


def write_records(results: Path, *records: Record) -> Path:
    """Write records into a study's folder, each where its cell's belongs; return the folder."""
    for record in records:
        write_record(results / record.stage / record.cell_id / "record.json", record)
    return results


def plan_study(folder: Path, study: str, *, name: str = "study.yaml", system: str = "laptop") -> Any:
    """Write a study's text into a folder and plan it; `system` is a name, or the text of a file of its own."""
    from transect.planning.plan import make_plan
    from transect.planning.study import find_system

    (folder / name).write_text(study)
    if ":" in system:
        (folder / "system.yaml").write_text(system)
        return make_plan(folder / name, folder / "system.yaml", folder / "results")
    return make_plan(folder / name, find_system(system), folder / "results")
