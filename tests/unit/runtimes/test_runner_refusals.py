"""What the runners in Java and JavaScript refuse, what they take, and how they end then."""

from __future__ import annotations

import contextlib
import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from runner_program import Program

from transect.onnx_models.tensors import write_tensors

X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9
DRIVER = """
int cuInit(unsigned f) { return f; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuMemcpyDtoH_v2(void *to, void *from, long size) { return !to + !from + !size; }
"""


@pytest.fixture(scope="module", params=["java", "javascript", pytest.param("browser", marks=pytest.mark.exhaustive)])
def program(request: pytest.FixtureRequest, java_models: Path, javascript_models: Path) -> Program:
    models = java_models if request.param == "java" else javascript_models
    return Program.of(request.param, models)


def test_cases_end_where_the_provider_is_missing(java_models: Path, tmp_path: Path) -> None:
    program = Program.of("java", java_models)
    if shutil.which("cc") is None:
        pytest.skip("cc is not on PATH: it compiles a driver that shows a device")
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcublasLt.so.13")
        pytest.skip("this machine has CUDA's libraries")
    (tmp_path / "driver.c").write_text(DRIVER)
    command = ["cc", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"]
    subprocess.run(command, cwd=tmp_path, check=True)
    write_tensors(tmp_path / "inputs", {"x": X})
    names = ("name", "model", "inputs", "outputs")
    paths = ("linear", program.models / "linear.onnx", tmp_path / "inputs", tmp_path / "outputs")
    case = dict(zip(names, map(str, paths), strict=True))
    (tmp_path / "cases.json").write_text(json.dumps([case, case]))
    arguments = ("--mode", "cases", "--cases", tmp_path / "cases.json", "--provider", "cuda")
    run = program.start(tmp_path, *arguments, LD_LIBRARY_PATH=str(tmp_path))
    assert run.code == 3, run.stderr
    assert "java: skipped: " in run.stderr
    assert "libcublasLt" in run.stderr
    assert [line["status"] for line in run.lines()] == ["started"]


def test_peak_memory_is_not_the_launcher_s(javascript_models: Path, tmp_path: Path) -> None:
    program = Program.of("javascript", javascript_models)
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
def test_outputs_without_the_rows_of_the_batch_are_named(program: Program, tmp_path: Path, batch: int) -> None:
    run = program.latency(tmp_path, "transposed", {"x": X}, batch=batch)
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    shape = f"[4, {batch}]" if program.runtime == "java" else f"[4,{batch}]"
    assert f"'y' has shape {shape}" in run.record["message"]


def test_outputs_without_a_batch_have_any_shape(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "transposed", {"x": X})
    assert run.code == 0, run.stderr
    assert np.array_equal(run.outputs()["y"], X.T)


def test_bools_are_0_or_1(program: Program, tmp_path: Path) -> None:
    java = program.runtime == "java"
    model, name = ("identity-bool", "x") if java else ("types", "flag")
    write_tensors(tmp_path / "inputs", {name: np.array([[True, False]])})
    (tmp_path / "inputs" / "tensor-0.bin").write_bytes(b"\x01\xff")
    run = program.start(tmp_path, *program.paths(tmp_path, model))
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "got 255" in run.record["message"]


def test_a_record_that_cannot_be_written_leaves_nothing(program: Program, tmp_path: Path) -> None:
    (tmp_path / "record.json").mkdir()
    run = program.latency(tmp_path, "linear", {"x": X})
    assert run.code == 1
    (line,) = run.stderr.splitlines()
    told = "cannot be written: " if program.runtime == "java" else str(tmp_path)
    assert line.startswith(f"{program.runtime}: --record {told}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inputs", "outputs", "record.json"]
