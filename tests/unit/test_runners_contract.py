"""The contract's arithmetic and files, without a runtime."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from transect.domain.cell import Cell
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.infer import _read_record, _samples, _time_metrics


@pytest.fixture(scope="module")
def contract() -> ModuleType:
    path = RUNNERS / "python" / "contract.py"
    spec = importlib.util.spec_from_file_location("runner_contract", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _inputs(folder: Path, rows: int, batch: int) -> Path:
    np.arange(rows * 2, dtype="<f4").tofile(folder / "x.bin")
    entry = {"name": "input", "dtype": "float32", "shape": [rows, 2], "file": "x.bin"}
    (folder / "header.json").write_text(json.dumps({"tensors": [entry], "batch": batch}))
    return folder


def test_full_batches_leave_the_rest_out(contract: ModuleType, tmp_path: Path) -> None:
    tensors, batch = contract.read_inputs(_inputs(tmp_path, 7, 3))
    batches = contract.full_batches(tensors, batch)
    assert [b["input"][0, 0] for b in batches] == [0.0, 6.0]
    assert {len(b["input"]) for b in batches} == {3}


@pytest.mark.parametrize(("rows", "batch"), [(3, 4), (3, 0)])
def test_batch_that_does_not_fit_is_refused(
    contract: ModuleType, tmp_path: Path, rows: int, batch: int
) -> None:
    with pytest.raises(contract.BadInput, match="N >= batch >= 1"):
        contract.read_inputs(_inputs(tmp_path, rows, batch))


@pytest.mark.parametrize(
    ("values", "narrow"),
    [
        ([100] * 100, True),
        (list(range(100, 200)), False),
        ([100] * 3, False),
        ([100] * 90 + [9000] * 10, True),
    ],
)
def test_interval_is_of_the_median(contract: ModuleType, values: list[int], narrow: bool) -> None:
    assert contract.interval_is_narrow(values) is narrow


@pytest.mark.parametrize(
    ("times", "seconds", "stop", "runs"),
    [([100], 60.0, "interval-reached", 50), ([1, 1000], 0.0, "time-limit", 50)],
)
def test_measurement_says_why_it_stopped(
    contract: ModuleType, times: list[int], seconds: float, stop: str, runs: int
) -> None:
    seen: list[Any] = []

    def step(batch: Any) -> tuple[int, int, int]:
        seen.append(batch)
        return 1, times[len(seen) % len(times)], 2

    series = contract.measure(step, ["a", "b", "c"], warmup=4, min_runs=50, max_seconds=seconds)
    assert (series["stop_reason"], len(series["run_ns"])) == (stop, runs)
    assert len(series["bind_ns"]) == len(series["copy_ns"]) == runs
    assert seen[:4] == ["a", "b", "c", "a"]
    assert seen[4:8] == ["a", "b", "c", "a"]


@pytest.mark.parametrize("name", RUNTIMES.names())
def test_every_runtime_keeps_the_protocol(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    runtime = RUNTIMES.get(name)
    cell = Cell.of(stage="infer", workload="digits-cnn", runtime=name, provider="cpu", batch=1)
    assert runtime.supports(cell) is None
    assert runtime.supports(cell.model_copy(update={"precision": "fp64"}))
    assert runtime.supports(cell.model_copy(update={"provider": "quantum"}))
    assert runtime.supports(cell.model_copy(update={"provider": "cuda"}))
    command = runtime.command(cell, "/env/bin/python", Path("/m"), ["--threads", "1"])
    assert command[-4:] == ["--model", "/m", "--threads", "1"]
    assert runtime.environment
    assert isinstance(runtime.uses_exporter, bool)
    assert all(path.is_file() for path in runtime.code_files())


def test_cuda_that_is_hidden_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    cell = Cell.of(stage="infer", workload="iris-mlp", runtime="python", provider="cuda", batch=1)
    assert (RUNTIMES.get("python").supports(cell) or "").startswith("no CUDA device")


@pytest.mark.parametrize(("runs", "has_p95"), [(399, False), (400, True)])
def test_p95_needs_four_hundred_samples(runs: int, has_p95: bool) -> None:
    series = list(range(1000, 1000 + runs))
    record = {"run_ns": series, "bind_ns": [1], "copy_ns": [2], "session_ns": 3}
    found = {entry["name"]: entry["value"] for entry in _time_metrics(record, 10)}
    assert ("latency_p95" in found) is has_p95
    assert found["throughput"] == pytest.approx(10 / found["latency"])
    if has_p95:
        assert found["latency_p95"] == pytest.approx(1379e-9)


def test_long_series_go_into_a_side_file(tmp_path: Path) -> None:
    values = np.linspace(1, 2, 5000)
    found = _samples(values, tmp_path)
    assert found == {"unit": "s", "file": "samples.npz", "key": "latency", "count": 5000}
    with np.load(tmp_path / "samples.npz") as file:
        assert np.array_equal(file["latency"], values)
    assert _samples(values[:3], tmp_path)["values"] == values[:3].tolist()


@pytest.mark.parametrize(
    ("code", "text", "cause"),
    [
        (-9, None, "killed"),
        (-11, None, "crash"),
        (1, "{half", "crash"),
        (1, '{"status": "ok"}', "crash"),
    ],
)
def test_runner_without_a_good_record_failed(
    tmp_path: Path, code: int, text: str | None, cause: str
) -> None:
    path = tmp_path / "runner.json"
    if text is not None:
        path.write_text(text)
    found = _read_record(path, code)
    assert (found["status"], found["cause"]) == ("failed", cause)
    assert str(abs(code)) in found["message"]
