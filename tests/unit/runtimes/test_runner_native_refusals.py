"""What the runners in C, C++, Rust and Go refuse, and how they end then."""

from __future__ import annotations

import contextlib
import ctypes
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from native_program import NATIVE, Program, X

from transect.onnx_models.tensors import read_tensors, write_tensors
from transect.runtimes import RUNTIMES


@pytest.fixture(scope="module", params=NATIVE)
def program(request: pytest.FixtureRequest, native_models: Path) -> Program:
    return Program.of(request.param, native_models)


def test_input_that_is_left_out_and_has_no_default_is_named(program: Program, tmp_path: Path) -> None:
    code, record, stderr = program.latency(tmp_path, "default", {"x": X})
    assert (code, record["cause"]) == (2, "bad-input")
    assert re.search(r"\bk\b", record["message"]), stderr


@pytest.mark.parametrize("batch", [2**63, 2**64 - 1, 2**64])
def test_batch_beyond_64_bits_is_bad_input(program: Program, tmp_path: Path, batch: int) -> None:
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, batch=batch)
    assert (code, record["cause"]) == (2, "bad-input"), stderr
    assert "header.json" in record["message"]


@pytest.mark.parametrize(("model", "batch"), [("pairs", 2), ("sequence", 7)])
def test_inputs_that_the_model_refuses_are_bad_input(program: Program, tmp_path: Path, model: str, batch: int) -> None:
    # Of seven rows the last pair is one; a tensor is no sequence.
    code, record, stderr = program.latency(tmp_path, model, {"x": X}, batch=batch)
    assert (code, record["cause"]) == (2, "bad-input"), stderr
    assert re.search(r"\bx\b", record["message"]), stderr


def test_outputs_without_the_rows_cannot_be_joined(program: Program, tmp_path: Path) -> None:
    code, record, _ = program.latency(tmp_path, "total", {"x": X}, batch=3)
    assert (code, record["cause"]) == (2, "bad-input")
    assert "output 'y' has shape [1" in record["message"]
    code, _, _ = program.latency(tmp_path, "total", {"x": X})
    assert code == 0
    assert np.array_equal(read_tensors(tmp_path / "outputs")["y"], X.sum(0, keepdims=True))


def test_cuda_without_a_device_is_skipped(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Hides every device, on a machine that has one too.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, "--provider", "cuda")
    assert (code, record["status"], record["reason"]) == (3, "skipped", "no CUDA device")
    assert "no CUDA device" in stderr
    assert "run_ns" not in record


def test_device_without_cudas_libraries_is_skipped_and_not_run_on_the_cpu(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("cc is not on PATH: it compiles a driver that shows a device")
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcublasLt.so.13")
        pytest.skip("this machine has CUDA's libraries")
    (tmp_path / "driver.c").write_text(
        "int cuInit(unsigned f) { return f; }\n"
        "int cuDeviceGetCount(int *n) { *n = 1; return 0; }\n"
        "int cuMemcpyDtoH_v2(void *to, void *from, long size) { return !to + !from + !size; }\n"
        "int cuMemcpyHtoD_v2(void *to, void *from, long size) { return !to + !from + !size; }\n"
    )
    command = ["cc", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"]
    subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    options = {"provider_options": {"device_id": "0", "use_tf32": "0"}}
    (tmp_path / "options.json").write_text(json.dumps(options))
    given = ("--provider", "cuda", "--options", tmp_path / "options.json")
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, *given)
    assert (code, record["status"]) == (3, "skipped"), stderr
    assert "libcublasLt" in record["reason"]
    assert "provider_used" not in record


def test_library_that_is_none_is_a_missing_dependency(program: Program, tmp_path: Path) -> None:
    runtime = RUNTIMES.get(program.name)
    binary = runtime.command(program.python, [])[0]
    write_tensors(tmp_path / "inputs", {"x": X})
    (tmp_path / "libonnxruntime.so").write_bytes(b"no library")
    for library, code, cause in (
        (tmp_path / "libonnxruntime.so", 1, "missing-dependency"),
        (tmp_path / "gone.so", 2, "bad-input"),
    ):
        given = [*program.paths(tmp_path, "relu"), "--record", tmp_path / "record.json"]
        command = [binary, "--library", str(library), *map(str, given)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        record = json.loads((tmp_path / "record.json").read_text())
        assert (done.returncode, record["cause"]) == (code, cause), done.stderr
        assert library.name in record["message"]


def test_outputs_that_cannot_be_written_are_said(program: Program, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file")
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X})
    assert (code, record["cause"]) == (1, "crash")
    assert str(tmp_path / "outputs") in record["message"]
    assert stderr.startswith(f"{program.name}: ")
    assert stderr.count("\n") == 1


def test_record_that_cannot_be_written_leaves_no_other_file(program: Program, tmp_path: Path) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    # A file cannot take a folder's name.
    (tmp_path / "record.json").mkdir()
    done = program.start(tmp_path, *program.paths(tmp_path, "relu"))
    assert done.returncode == 1
    assert "record.json" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"record.json", "inputs", "outputs"}
