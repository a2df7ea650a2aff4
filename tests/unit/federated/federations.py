"""A small federation in a folder: digits that nobody drew, and all that its payloads take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from transect.domain.axes.federate import FederateCell
from transect.domain.record import Record, Status, write_record
from transect.federated.engines import ENGINES, Session, Task, Turn
from transect.payloads.federate import federate
from transect.payloads.federate_reference import reference
from transect.stages.federate_reference import federate_reference_of
from transect.training.workloads import WORKLOADS

WORKLOAD, ROWS, SEED = "digits-logistic", 90, 20261120
AXES: dict[str, Any] = {
    "workload": WORKLOAD,
    "engine": "loop",
    "framework": "numpy",
    "aggregation": "fedavg",
    "partition": "dirichlet-0.5",
    "clients": 6,
    "cohort": 3,
    "rounds": 4,
    "local_steps": 3,
    "batch": 5,
}


def a_cell(**axes: Any) -> FederateCell:
    return FederateCell(**AXES | axes)


def data_folder(folder: Path, **more: np.ndarray) -> Path:
    """Write what the dataset stage would have left: rows around ten centres."""
    generator = np.random.default_rng(5)
    centres = generator.normal(size=(10, 1, 8, 8))
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for part, rows in (("train", ROWS), ("test", 40)):
        arrays[f"y_{part}"] = np.arange(rows) % 10
        arrays[f"x_{part}"] = centres[arrays[f"y_{part}"]] + generator.normal(size=(rows, 1, 8, 8))
    np.savez(folder / "data.npz", **arrays, **more)
    weights = WORKLOADS.get(WORKLOAD).model.initial_weights(3)
    np.savez(folder / "start-0.npz", order=np.arange(ROWS)[None], **weights)
    return folder


def parameters(**changes: Any) -> dict[str, Any]:
    return WORKLOADS.get(WORKLOAD).defaults.model_dump() | {"quality_target": 0.6} | changes


def extended(turns: list[Turn]) -> list[Turn]:
    """Each with a pull and a correction of its own; these numbers are in no order or layout that is another's."""
    generator = np.random.default_rng(6)
    return [
        replace(
            turn,
            mu=0.5 * (1 + turn.number),
            anchor=(turn.given + generator.normal(size=turn.given.size)).astype(turn.given.dtype),
            correction=generator.normal(size=turn.given.size).astype(turn.given.dtype),
        )
        for turn in turns
    ]


def spec_of(cell: Any, **changes: Any) -> dict[str, Any]:
    return {"cell": cell.axes(), "seed": SEED, "run": {}, "precisions": ["fp32"], "parameters": parameters(**changes)}


def make_reference(folder: Path, cell: FederateCell, data: Path, **changes: Any) -> Path:
    """Compute a cell's reference into a folder of its own, with its record; return it."""
    target = federate_reference_of(cell)
    out = folder / target.id
    out.mkdir(parents=True)
    # In this process alone.
    with patch("transect.payloads.federate_reference.available_cores", return_value=1):
        found = reference(spec_of(target, **changes), {"data": data}, out)
    record = Record(
        study="s",
        stage=target.stage,
        cell=target,
        cell_id=target.id,
        status=Status(found.get("status", "ok")),
        cause=found.get("cause"),
        message=found.get("message", ""),
        fingerprint="f",
        started="2026-11-28T00:00:00Z",
        ended="2026-11-28T00:00:01Z",
        details=found.get("details", {}),
    )
    write_record(out / "record.json", record)
    return out


def run(folder: Path, cell: FederateCell, data: Path, course: Path, **changes: Any) -> tuple[dict[str, Any], Path]:
    """Simulate; return the result and the cell's folder."""
    out = folder / cell.id
    out.mkdir(parents=True, exist_ok=True)
    found = federate(spec_of(cell, **changes), {"data": data, "reference": course}, out)
    assert found is not None
    return found, out


def spoil(monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Session], Session]) -> None:
    """Let engine `loop` err: `wrong` makes a session of the right one."""
    engine = type(ENGINES.get("loop"))
    whole = engine.session

    @contextmanager
    def session(self: Any, task: Task) -> Iterator[Session]:
        with whole(self, task) as right:
            yield wrong(right)

    monkeypatch.setattr(engine, "session", session)
