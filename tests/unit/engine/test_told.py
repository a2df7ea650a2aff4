"""A record holds all that its payload was told, and counts while the limits of its study allow what it used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cell_jobs import make_job
from factories import infer_cell
from transect.domain.cell import Cell
from transect.engine.job import Result
from transect.engine.run_cell import make_record
from transect.engine.store import outgrown

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
    settings = {"limits": {"warmup": 20, "min_runs": 30, "max_seconds": 2.0}, "options": {"threads": 1}}
    record = recorded(tmp_path, infer_cell("c"), parameters={"epochs": 3}, **settings)
    assert record.details["told"] == settings and record.parameters == {"epochs": 3}


def test_where_files_lie_is_not_in_the_record_but_what_options_name_holds_is(tmp_path: Path) -> None:
    rule = {"format": "jsonl", "path": "/home/somebody/tickets"}
    spec = {"rule": rule, "files": ["/a"], "path": "/b", "named": ["/home/somebody/table 1.csv"]}
    inputs = ["train/x 0f", "table 1.csv 1a"]
    record = recorded(tmp_path, infer_cell("c"), inputs, **spec)
    assert record.details["told"] == {"rule": {"format": "jsonl"}, "named": ["table 1.csv 1a"]}
    assert record.inputs == inputs


def test_a_checksum_or_a_name_that_a_variable_holds_too_stays(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CACHE_KEY", "0123456789abcdef")
    monkeypatch.setenv("SORT_KEY", "model.onnx")
    known = {"model.onnx": "0123456789abcdef"}
    record = recorded(tmp_path, infer_cell("c"), ["model.onnx 0123456789abcdef"], made=known)
    assert (record.files, record.inputs) == (known, ["model.onnx 0123456789abcdef"])


# When a study's limits make a record stale.

MIB = 2**20


def facts(cause: str | None = None, nodes: int = 1, **details: Any) -> dict[str, Any]:
    limits = {"seconds": 100.0, "memory_mb": 500}
    return {"cause": cause, "cell": {"nodes": nodes}, "details": details, "limits": limits}


RAN = {"payload_s": 40.0, "payload_peak_bytes": 200 * MIB}
# A record, limits in seconds and MB, and words of the reason when it is stale.
CASES = [
    (facts(**RAN), (100, 500), None),
    (facts(**RAN), (40, 200), None),
    (facts(**RAN), (39.9, 500), "took 40 s"),
    (facts(**RAN), (100, 199), "held 200 MB"),
    (facts("wrong-result", **RAN), (30, 500), "took 40 s"),
    # Ranks that srun started are none of the runner's children: theirs count per node.
    (facts(nodes=2, payload_peak_bytes=1, rank_peak_memory_bytes=[300 * MIB] * 2), (100, 300), None),
    (facts(payload_peak_bytes=1, rank_peak_memory_bytes=[300 * MIB] * 2), (100, 300), "held 600"),
    # It ran under these very limits: peaks that do not fall together, its own end that took a moment.
    (facts(payload_peak_bytes=1, rank_peak_memory_bytes=[300 * MIB] * 2), (100, 500), None),
    (facts(payload_peak_bytes=1, rank_peak_memory_bytes=[300 * MIB] * 2), (100, 499), "held 600"),
    (facts(payload_s=100.01), (100, 500), None),
    (facts(payload_s=100.01), (99, 500), "took 100 s"),
    (facts("timeout", payload_s=100.2), (100, 500), None),
    (facts("timeout", payload_s=100.2), (101, 500), "ended at limits.seconds: 100"),
    (facts("out-of-memory", payload_peak_bytes=501 * MIB), (100, 500), None),
    (facts("out-of-memory", payload_peak_bytes=501 * MIB), (900, 400), None),
    (facts("out-of-memory", payload_peak_bytes=501 * MIB), (100, 501), "limits.memory_mb: 500"),
    (facts("out-of-memory", payload_peak_bytes=501 * MIB), (100, None), "which is null now"),
    # A GPU's memory, without any limit of ours.
    (facts("out-of-memory") | {"limits": {"seconds": 100.0, "memory_mb": None}}, (100, 900), None),
    # Never started, or settled by others.
    (facts("unsupported"), (1, 16), None),
]


@pytest.mark.parametrize(("record", "limits", "words"), CASES)
def test_a_record_holds_while_it_fits(record, limits, words):
    reason = outgrown(record, {"seconds": limits[0], "memory_mb": limits[1]})
    assert (reason is None) == (words is None)
    assert words is None or words in reason
