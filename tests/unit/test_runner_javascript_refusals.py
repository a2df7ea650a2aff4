"""What the runners in JavaScript refuse, and what they do not take for their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from javascript_program import Program, make_models, python_of

from transect.onnx_models.tensors import write_tensors

X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9


@pytest.fixture(scope="module")
def models(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_models(torch_python, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=["javascript", "browser"])
def program(
    request: pytest.FixtureRequest, models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Program:
    python = python_of(request.param, tmp_path_factory.mktemp("environment"))
    return Program(request.param, python, models)


def test_peak_memory_is_not_the_launcher_s(models: Path, tmp_path: Path) -> None:
    program = Program("javascript", python_of("javascript", tmp_path), models)
    # Of this process, which starts the program.
    held = b"x" * 2**29
    run = program.latency(tmp_path, "linear", {"x": X})
    assert run.code == 0, run.stderr
    assert 2**20 < run.record["peak_memory_bytes"] < len(held)


def _load(program: Program, folder: Path, arrivals: list[int], *more: str) -> tuple[int, dict]:
    np.array(arrivals, "<i8").tofile(folder / "arrivals.bin")
    write_tensors(folder / "inputs", {"x": X}, batch=2)
    given = ("--mode", "load", "--arrivals", folder / "arrivals.bin", "--warmup", "1")
    run = program.start(folder, *program.paths(folder, "linear"), *given, *more)
    return run.code, run.record


def test_load_without_a_limit_serves_all(program: Program, tmp_path: Path) -> None:
    code, record = _load(program, tmp_path, [0, 1000], "--max-seconds", "1e300")
    assert (code, record["stop_reason"]) == (0, "all-served")
    assert len(record["start_ns"]) == 2


def test_arrivals_that_no_limit_can_follow_are_named(program: Program, tmp_path: Path) -> None:
    code, record = _load(program, tmp_path, [0, 2**60 + 1])
    assert (code, record["cause"]) == (2, "bad-input")
    assert str(2**60 + 1) in record["message"]


@pytest.mark.parametrize("batch", [2, 7])
def test_outputs_without_the_rows_of_the_batch_are_named(
    program: Program, tmp_path: Path, batch: int
) -> None:
    run = program.latency(tmp_path, "transposed", {"x": X}, batch=batch)
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert f"'y' has shape [4,{batch}]" in run.record["message"]


def test_outputs_without_a_batch_have_any_shape(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "transposed", {"x": X})
    assert run.code == 0, run.stderr
    assert np.array_equal(run.outputs()["y"], X.T)


def test_bools_are_0_or_1(program: Program, tmp_path: Path) -> None:
    write_tensors(tmp_path / "inputs", {"flag": np.array([[True, False]])})
    (tmp_path / "inputs" / "tensor-0.bin").write_bytes(b"\x01\xff")
    run = program.start(tmp_path, *program.paths(tmp_path, "types"))
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "got 255" in run.record["message"]


def test_a_record_that_cannot_be_written_leaves_nothing(program: Program, tmp_path: Path) -> None:
    (tmp_path / "record.json").mkdir()
    run = program.latency(tmp_path, "linear", {"x": X})
    assert run.code == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"{program.runtime}: --record {tmp_path}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inputs", "outputs", "record.json"]
