"""A record holds all that its payload was told: what it was not told, or what lies elsewhere in it, apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cell_jobs import make_job
from factories import infer_cell
from transect.domain.cell import Cell
from transect.engine.job import Result
from transect.engine.run_cell import make_record

RUNNER = {
    "study": "s",
    "system": {"launcher": "srun", "scratch": "/scratch/me"},
    "environment": "base",
    "lock": "1",
    "sources": "2",
    "inputs": {},
    "fingerprint": "3",
    "about": {},
    "taken": False,
    "optional": True,
    "cell_limits": {"seconds": 60, "memory_mb": None},
}


def recorded(folder: Path, cell: Cell, inputs: Sequence[str] = (), made: Any = None, **spec: Any) -> Any:
    job = make_job(folder, cell, **RUNNER | {"cell_id": cell.id} | spec)
    return make_record(job, Result(), "f", "2026-01-01T00:00:00Z", inputs=inputs, files=made)


def test_how_long_a_runtime_is_measured_is_in_its_record(tmp_path: Path) -> None:
    told = {"limits": {"warmup": 20, "min_runs": 30, "max_seconds": 2.0}, "options": {"threads": 1}}
    record = recorded(tmp_path, infer_cell("c"), parameters={"epochs": 3}, **told)
    assert record.details["told"] == told and record.parameters == {"epochs": 3}


def test_where_files_lie_is_not_in_the_record_but_what_options_name_holds_is(tmp_path: Path) -> None:
    rule = {"format": "jsonl", "path": "/home/somebody/tickets"}
    told = {"rule": rule, "files": ["/a"], "path": "/b", "named": ["/home/somebody/table 1.csv"]}
    inputs = ["train/x 0f", "table 1.csv 1a"]
    record = recorded(tmp_path, infer_cell("c"), inputs, **told)
    assert record.details["told"] == {"rule": {"format": "jsonl"}, "named": ["table 1.csv 1a"]}
    assert record.inputs == inputs


def test_a_checksum_or_a_name_that_a_variable_holds_too_stays(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CACHE_KEY", "0123456789abcdef")
    monkeypatch.setenv("SORT_KEY", "model.onnx")
    known = {"model.onnx": "0123456789abcdef"}
    record = recorded(tmp_path, infer_cell("c"), ["model.onnx 0123456789abcdef"], made=known)
    assert (record.files, record.inputs) == (known, ["model.onnx 0123456789abcdef"])
