"""Result folders of made-up runs: cells with chosen speeds and accuracies, of which some can be spoilt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Status, write_record

__all__ = ["START", "cell", "noisy", "plan", "record", "write_run"]

START = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)


def cell(framework: str = "torch", repeat: int = 0, **axes: Any) -> Cell:
    """Return a training cell."""
    return Cell.of(**{
        "stage": "train", "workload": "iris-mlp", "framework": framework, "strategy": "single",
        "batch": 16, "repeat": repeat, **axes,
    })  # fmt: skip


def noisy(rate: float, seed: int, repeats: int = 5, noise: float = 0.01) -> list[float]:
    """Return repeats of a rate; equal seeds give equal noise."""
    return (rate * np.exp(noise * np.random.default_rng(seed).standard_normal(repeats))).tolist()


def record(
    one: Cell, metrics: Mapping[str, float], *, at: datetime = START, status: Status = Status.OK,
    cause: Cause | None = None, study: str = "made-up", commit: str = "0" * 40, host: str = "node-1",
    **fields: Any,
) -> Record:  # fmt: skip
    """Return a record of a cell."""
    return Record(
        study=study, stage=one.stage, cell=one, cell_id=one.id, status=status, cause=cause,
        fingerprint="made-up", started=at.isoformat(), ended=(at + timedelta(seconds=9)).isoformat(),
        metrics=[MetricValue.of(name, value) for name, value in metrics.items()],
        **{
            "parameters": {"learning_rate": 0.1, "epochs": 3},
            "details": {"global_batch": 16, "disturbed": False},
            "provenance": {
                "host": host, "cpu_model": "Made-up CPU", "cores": 4, "memory_bytes": 16 * 2**30,
                "git": {"commit": commit, "dirty": False},
                "environment": {"name": one.get("framework"), "lock_hash": "0123abcd"},
                "libraries": {"numpy": "2.1.0"},
            },
            **fields,
        },
    )  # fmt: skip


def write_run(
    folder: Path, rates: Mapping[str, Sequence[float]], *, day: int = 0,
    accuracy: Mapping[str, Sequence[float]] | None = None, **how: Any,
) -> Path:  # fmt: skip
    """Write a run: each framework's rates by repeat, on a day; `how` is that of `record`. Return `folder`."""
    place = 0
    for framework, values in rates.items():
        for repeat, rate in enumerate(values):
            metrics = {"samples_per_second": rate}
            if accuracy is not None:
                metrics["accuracy"] = accuracy[framework][repeat]
            one = cell(framework, repeat)
            at = START + timedelta(days=day, seconds=10 * place)
            write_record(
                folder / "train" / one.id / "record.json", record(one, metrics, at=at, **how)
            )
            place += 1
    return folder


def plan(folder: Path, cells: Sequence[Cell], fingerprint: str = "made-up") -> None:
    """Write the plan of a run with these cells."""
    facts = {
        "study": {"name": folder.name},
        "cells": {f"{c.stage}/{c.id}": fingerprint for c in cells},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(facts))
