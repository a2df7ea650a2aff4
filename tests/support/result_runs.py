"""Result folders of made-up runs: cells with chosen speeds and accuracies, of which some can be spoilt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from factories import log_metric, log_run, make_record, train_cell, write_records
from transect.domain.cell import Cell
from transect.domain.record import Record

FRAMEWORKS = ("numpy", "torch", "keras", "tensorflow", "mxnet", "jax")
START = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)


def noisy(rate: float, seed: int, repeats: int = 5, noise: float = 0.01) -> list[float]:
    """Return repeats of a rate; equal seeds give equal noise."""
    return (rate * np.exp(noise * np.random.default_rng(seed).standard_normal(repeats))).tolist()


def rates(seed: int, **factors: float) -> dict[str, list[float]]:
    """Return the rates of six frameworks, some times a factor."""
    return {
        name: noisy(100 * (place + 1) * factors.get(name, 1.0), 100 * seed + place)
        for place, name in enumerate(FRAMEWORKS)
    }


def run_record(
    cell: Cell,
    metrics: Mapping[str, float],
    *,
    at: datetime = START,
    commit: str = "0" * 40,
    host: str = "node-1",
    **fields: Any,
) -> Record:
    """Return a record of a cell."""
    usual = {
        "study": "made-up",
        "fingerprint": "made-up",
        "started": at.isoformat(),
        "ended": (at + timedelta(seconds=9)).isoformat(),
        "parameters": {"learning_rate": 0.1, "epochs": 3},
        "details": {"global_batch": 16, "disturbed": False},
        "provenance": {
            "host": host,
            "cpu_model": "Made-up CPU",
            "cores": 4,
            "memory_bytes": 16 * 2**30,
            "git": {"commit": commit, "dirty": False},
            "environment": {"name": cell.get("framework"), "lock_hash": "0123abcd"},
            "libraries": {"numpy": "2.1.0"},
        },
    }
    return make_record(cell, metrics, **usual | fields)


def write_run(
    folder: Path,
    rates: Mapping[str, Sequence[float]],
    *,
    day: int = 0,
    accuracy: Mapping[str, Sequence[float]] | None = None,
    **how: Any,
) -> Path:
    """Write a run: each framework's rates by repeat, on a day; `how` is that of `run_record`. Return `folder`."""
    place = 0
    for framework, values in rates.items():
        for repeat, rate in enumerate(values):
            metrics = {"samples_per_second": rate}
            if accuracy is not None:
                metrics["accuracy"] = accuracy[framework][repeat]
            at = START + timedelta(days=day, seconds=10 * place)
            write_records(folder, run_record(train_cell(framework, repeat), metrics, at=at, **how))
            place += 1
    return folder


def write_planned(folder: Path, cells: Sequence[Cell], fingerprint: str = "made-up") -> None:
    """Write the plan of a run with these cells."""
    facts = {"study": {"name": folder.name}, "cells": {f"{c.stage}/{c.id}": fingerprint for c in cells}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(facts))


def stream_run(rate: float, **how: Any) -> dict[str, Any]:
    """Return a run of STREAM as parsers tell it: the triad's rate in MB/s; `how` are parameters, or fields."""
    fields = {key: how.pop(key) for key in ("status", "reason", "line", "benchmark") if key in how}
    metric = log_metric("triad", rate, "MB/s", "memory_bandwidth", 1e6, printed=repr(rate))
    usual = {"line": 1, "benchmark": "stream", "variant": "mccalpin", "version": "5.10"}
    run = log_run("", **usual | fields, parameters={"array_size": 10**7, "threads": 8} | how) | {"metrics": [metric]}
    del run["file"]
    return run


def write_logs(folder: Path, source: str, runs: Mapping[str, dict[str, Any]], *, read: int = 0) -> Path:
    """Write what reading logs below `source` on a day gave: runs by the log's path below it. Return `folder`."""
    told = [{"file": f"/archive/{source}/{name}", **run} for name, run in runs.items()]
    one = run_record(
        Cell.of(stage="ingest", source=source),
        {},
        at=START + timedelta(days=read),
        details={"runs": told},
        provenance={},
    )
    return write_records(folder, one)
