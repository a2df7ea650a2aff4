"""The Python runners on real models, in the environment of torch and ONNX Runtime."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from onnx_cells import ROWS, infer, metrics
from transect.runtimes.programs import run_record, start_command
from transect.runtimes.serving_plans import Serving


@pytest.fixture
def cell_folder(digits: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(digits, tmp_path / "copy"))


@pytest.mark.parametrize("runtime", ["python", "python-iobinding", "torch-eager"])
@pytest.mark.parametrize("batch", [1, 16, ROWS + 10])
def test_runner_agrees_and_is_timed(torch_python: str, cell_folder: Path, runtime: str, batch: int) -> None:
    code, result, stderr = infer(torch_python, cell_folder, "torchscript", runtime=runtime, batch=batch)
    assert (code, result["status"]) == (0, "ok"), (result, stderr)
    values, details = metrics(result), result["details"]
    assert values["throughput"] == pytest.approx(batch / values["latency"])
    assert values["max_abs_difference"] <= details["tolerance"]
    assert values["top1_agreement"] == 1.0
    assert details["rows_compared"] == max(ROWS, batch)
    assert details["provider_used"] == "cpu"
    assert details["stop_reason"] in ("interval-reached", "time-limit")
    assert details["session_options"]["intra_op_num_threads"] == 1
    assert details["flops_per_run"] > 0
    series = result["samples"]["latency"]
    assert series["count"] == details["runs"] >= 20


def test_wrong_outputs_are_a_wrong_result_without_times(torch_python: str, cell_folder: Path) -> None:
    path = cell_folder / "torchscript" / "expected" / "tensor-0.bin"
    expected = np.fromfile(path, "<f4")
    expected[-3] += 1e-3
    expected.tofile(path)
    code, result, _ = infer(torch_python, cell_folder, "torchscript")
    assert (code, result["status"], result["cause"]) == (0, "failed", "wrong-result")
    assert "tolerance" in result["message"]
    assert set(metrics(result)) == {"max_abs_difference", "max_rel_difference", "top1_agreement", "nonfinite_outputs"}
    assert result["samples"] == {}


@pytest.mark.parametrize("content", [b"", b"this is no model" * 9, None])
def test_damaged_model_is_named(torch_python: str, cell_folder: Path, content: bytes | None) -> None:
    model = cell_folder / "torchscript" / "model.onnx"
    model.write_bytes(model.read_bytes()[:2000] if content is None else content)
    code, result, _ = infer(torch_python, cell_folder, "torchscript")
    assert (code, result["status"], result["cause"]) == (1, "failed", "bad-input")
    assert "model.onnx" in result["message"]


@pytest.mark.parametrize("runtime", ["python", "torch-eager"])
def test_cuda_without_a_device_is_skipped_before_a_program_is_started(
    torch_python: str, digits: Path, tmp_path: Path, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hides every device, on a machine that has one too.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    shutil.copytree(digits, tmp_path / "copy")
    code, result, log = infer(torch_python, tmp_path / "copy", "torchscript", runtime=runtime, provider="cuda")
    assert (code, log) == (1, ""), result
    assert "no CUDA device" in result["message"]


def test_a_runner_in_python_says_itself_that_it_has_no_device(torch_python: str, digits: Path, tmp_path: Path) -> None:
    exported = digits / "torchscript"
    paths = {"inputs": exported / "inputs", "outputs": tmp_path / "o", "out": tmp_path}
    plan = Serving(model=exported / "model.onnx", provider="cuda", **paths).plan()
    command = start_command("python", torch_python, plan)
    done = subprocess.run(command, env={"CUDA_VISIBLE_DEVICES": "-1"}, check=False, capture_output=True)
    assert done.returncode == 3
    assert run_record("python", tmp_path, 3)["status"] == "skipped"
