"""The contract's arithmetic and files, without a runtime."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from transect.domain.axes.infer import InferCell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.runtimes import RUNTIMES
from transect.runtimes._records import read_runner_record
from transect.runtimes.infer import conclude
from transect.runtimes.prepare import RECORD
from transect.runtimes.times import run_values


@pytest.mark.parametrize("name", RUNTIMES.names())
def test_every_runtime_says_that_there_is_no_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    cell = Cell.of(stage="infer", workload="digits-cnn", runtime=name, provider="cuda", batch=1)
    assert RUNTIMES.get(name).supports(cell)


@pytest.mark.parametrize(("runs", "has_p95"), [(399, False), (400, True)])
def test_p95_needs_four_hundred_samples(runs: int, has_p95: bool) -> None:
    series = list(range(1000, 1000 + runs))
    ones = [1] * runs
    record = {"run_ns": series, "bind_ns": ones, "copy_ns": ones, "session_ns": 3}
    found = run_values(record, 10)
    assert found["end_to_end_time"] == pytest.approx(found["latency"] + 2e-9)
    assert ("latency_p95" in found) is has_p95
    assert found["throughput"] == pytest.approx(10 / found["latency"])
    if has_p95:
        assert found["latency_p95"] == pytest.approx(1379e-9)


@pytest.mark.parametrize(
    ("code", "text", "cause", "told"),
    [
        (-9, None, "killed", "9 without a readable record"),
        (-11, None, "crash", "11 without a readable record"),
        (1, "{half", "crash", "1 without a readable record (JSONDecodeError"),
        (1, '{"status": "ok"}', "crash", "1 after it wrote its record"),
        (0, "{}", "crash", "(KeyError: 'status')"),
        (0, '{"status": "fine"}', "crash", "status 'fine', expected ok, failed or skipped"),
        (1, '{"status": "failed", "cause": "bad luck"}', "crash", "'bad luck' is not a valid Cause"),
    ],
)
def test_runner_without_a_good_record_failed(
    tmp_path: Path, code: int, text: str | None, cause: str, told: str
) -> None:
    path = tmp_path / "runner.json"
    if text is not None:
        path.write_text(text)
    found = read_runner_record(path, code)
    assert (found["status"], found["cause"]) == ("failed", cause)
    assert told in found["message"]


GOOD = {
    "status": "ok",
    "runtime_version": "1",
    "provider_used": "cpu",
    "session_ns": 1,
    "run_ns": [1],
    "bind_ns": [0],
    "copy_ns": [0],
}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("run_ns", None, "reported run_ns None, expected a list of numbers >= 0"),
        ("run_ns", [-1], "reported run_ns [-1], expected"),
        ("run_ns", ["fast"], "reported run_ns ['fast'], expected"),
        ("bind_ns", [], "reported 0 bind_ns, expected 1"),
        ("session_ns", None, "lacks session_ns"),
        ("provider_used", "cuda", "ran on cuda, the cell asks for cpu"),
    ],
)
def test_a_record_that_lacks_what_the_contract_says_is_named(tmp_path: Path, key: str, value: Any, told: str) -> None:
    cell = InferCell(workload="digits-cnn", runtime="python", provider="cpu", batch=1)
    (tmp_path / RECORD).write_text(json.dumps(GOOD | {key: value}))
    with pytest.raises(BadInput, match=re.escape(told)):
        conclude(cell, tmp_path, tmp_path, 0, python="python")
