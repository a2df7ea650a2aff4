"""Baselines beside ONNX Runtime in Python: frameworks' own compilers, other providers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from onnx_cells import infer, metrics
from transect.domain.axes.infer import InferCell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.onnx_models.tensors import write_tensors
from transect.runtimes import RUNTIMES
from transect.runtimes._programs import missing_library
from transect.runtimes.plan_file import Plan
from transect.runtimes.prepare import check_model
from transect.runtimes.serving_plans import Serving

BASELINES = ("torch-eager", "torchscript", "torch-compile", "tensorflow")
THREADS = {"intra_op_num_threads": 2, "inter_op_num_threads": 1}


def _cell(runtime: str, **axes: Any) -> InferCell:
    given = {"workload": "digits-cnn", "runtime": runtime, "provider": "cpu", "batch": 16} | axes
    cell = Cell.of(stage="infer", **given)
    assert isinstance(cell, InferCell)
    return cell


def _python(runtime: str, folder: Path, **axes: Any) -> str:
    if reason := RUNTIMES.get(runtime).supports(_cell(runtime, **axes)):
        pytest.skip(reason)
    return environment_python(RUNTIMES.get(runtime).environment, folder)


@pytest.fixture(scope="module")
def folder(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(digits, tmp_path_factory.mktemp("baselines") / "digits"))


@pytest.mark.parametrize("runtime", BASELINES)
def test_baseline_agrees_with_the_framework_and_says_what_it_set(
    folder: Path, tmp_path: Path, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    python = _python(runtime, tmp_path)
    options = THREADS | {"graph_optimization_level": "all"}
    code, result, stderr = infer(
        python, folder, "torchscript", out=f"infer-{runtime}", runtime=runtime, threads=2, options=options
    )
    assert (code, result["status"]) == (0, "ok"), (result, stderr)
    values, details = metrics(result), result["details"]
    assert values["max_abs_difference"] <= details["tolerance"]
    assert values["top1_agreement"] == 1.0
    assert details["rows_compared"] == 50
    assert values["session_time"] > 0
    assert {key: details["session_options"][key] for key in THREADS} == THREADS
    assert details["options_not_set"] == ["graph_optimization_level"]
    # What a compiler writes is gone, and no other run's was taken.
    assert list(tmp_path.glob("transect-inductor-*")) == []
    if runtime == "torch-compile":
        assert details["language_options"]["inductor_cache"] == "empty"


def _plan(folder: Path, told: Any) -> Plan:
    """Return the plan of a baseline that is told so."""
    if isinstance(told, dict):
        told = told | {"weights": str(folder / told["weights"])}
    (folder / "model.json").write_text(json.dumps(told))
    paths = {name: folder / name for name in ("inputs", "outputs", "out")}
    return Serving(model=folder / "model.json", **paths, check=check_model).plan()


GOOD = {"workload": "digits-cnn", "weights": "weights.npz"}
WRONG = {
    "gone.npz": GOOD | {"weights": "gone.npz"},
    "no-such-workload": GOOD | {"workload": "no-such-workload"},
    "weights do not fit the model": GOOD | {"weights": "other.npz"},
    'expected {"workload", "weights"}': [],
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_model_file_is_bad_input(folder: Path, tmp_path: Path, message: str) -> None:
    shutil.copy(folder / "weights.npz", tmp_path)
    np.savez(tmp_path / "other.npz", **{"0.weight": np.ones((3, 3), np.float32)})
    write_tensors(tmp_path / "inputs", {"input": np.ones((4, 1, 8, 8), np.float32)}, batch=2)
    with pytest.raises(BadInput) as caught:
        _plan(tmp_path, WRONG[message])
    assert "model.json" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "tensors",
    [
        {"input": np.ones((4, 1, 8, 9), np.float32)},
        {"input": np.ones((4, 1, 8, 8))},
        {name: np.ones((4, 1, 8, 8), np.float32) for name in "ab"},
    ],
)
def test_inputs_of_another_workload_are_bad_input(folder: Path, tmp_path: Path, tensors: dict[str, np.ndarray]) -> None:
    shutil.copy(folder / "weights.npz", tmp_path)
    write_tensors(tmp_path / "inputs", tensors, batch=2)
    with pytest.raises(BadInput, match=r"takes one float32 tensor, rows of \[1, 8, 8\]"):
        _plan(tmp_path, GOOD)


@pytest.mark.env
def test_compiler_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = RUNTIMES.get("torch-compile")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert "install a C++ compiler" in (runtime.supports(_cell("torch-compile")) or "")
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    assert "CXX is 'no-such-compiler" in (runtime.supports(_cell("torch-compile")) or "")


def test_openvino_runs_on_its_own_threads_in_its_own_package(folder: Path, tmp_path: Path) -> None:
    python = _python("python-openvino", tmp_path, provider="openvino")
    code, result, stderr = infer(
        python,
        folder,
        "torchscript",
        out="openvino",
        runtime="python-openvino",
        provider="openvino",
        threads=2,
        options={"intra_op_num_threads": 2},
    )
    assert (code, result["status"]) == (0, "ok"), (result, stderr)
    details = result["details"]
    assert details["provider_used"] == "openvino"
    # ONNX Runtime of another version: it is seen, and compared with nothing silently.
    assert details["runtime_version"] == "1.24.1"
    assert details["session_options"]["provider_options"]["num_of_threads"] == "2"
    assert {name.split()[1] for name in details["kernels"]["names"]} == {"OpenVINOExecutionProvider"}
    assert metrics(result)["max_abs_difference"] <= details["tolerance"]


@pytest.mark.env
def test_other_providers_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    python = RUNTIMES.get("python")
    assert "python-openvino" in (python.supports(_cell("python", provider="openvino")) or "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    for provider in ("cuda", "tensorrt"):
        reason = python.supports(_cell("python", provider=provider)) or ""
        assert reason.startswith("no CUDA device")
    missing = missing_library("libc.so.6", "libno-such-thing.so.9", how="install it") or ""
    assert missing.startswith("libno-such-thing.so.9 cannot be loaded")
    assert missing.endswith(": install it")
    assert missing_library("libc.so.6", how="install it") is None
