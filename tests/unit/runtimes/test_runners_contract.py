"""The contract's arithmetic and files, without a runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.domain.cell import Cell
from transect.runtimes import RUNTIMES
from transect.runtimes._records import read_runner_record
from transect.runtimes.times import run_values


@pytest.mark.parametrize("name", RUNTIMES.names())
@pytest.mark.env
def test_every_runtime_keeps_the_protocol(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    runtime = RUNTIMES.get(name)
    cell = Cell.of(stage="infer", workload="digits-cnn", runtime=name, provider="cpu", batch=1)
    missing = runtime.supports(cell)
    assert missing is None or len(missing) > 20
    assert runtime.supports(cell.model_copy(update={"precision": "fp64"}))
    assert runtime.supports(cell.model_copy(update={"provider": "quantum"}))
    assert runtime.supports(cell.model_copy(update={"provider": "cuda"}))
    command = runtime.command("/env/bin/python", ["--model", "/m"])
    assert command[-2:] == ["--model", "/m"]
    assert all(isinstance(path, Path) for path in runtime.files("/env/bin/python"))
    assert runtime.environment
    assert isinstance(runtime.uses_exporter, bool)
    assert all(path.is_file() for path in runtime.code_files())


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
    ("code", "text", "cause"),
    [(-9, None, "killed"), (-11, None, "crash"), (1, "{half", "crash"), (1, '{"status": "ok"}', "crash")],
)
def test_runner_without_a_good_record_failed(tmp_path: Path, code: int, text: str | None, cause: str) -> None:
    path = tmp_path / "runner.json"
    if text is not None:
        path.write_text(text)
    found = read_runner_record(path, code)
    assert (found["status"], found["cause"]) == ("failed", cause)
    assert str(abs(code)) in found["message"]
