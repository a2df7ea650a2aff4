"""The runner in Kotlin, which has level `latency` alone: how a language begins."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from runner_program import LINEAR, Program, X

from factories import infer_cell
from transect.domain.errors import BadInput
from transect.onnx_models.tensors import NoTensor, write_tensors
from transect.runtimes import RUNTIMES


@pytest.fixture
def kotlin(runner_models: Path) -> Program:
    return Program.of("kotlin", runner_models)


def test_rows_are_run_in_batches_the_partial_one_included(kotlin: Program, tmp_path: Path) -> None:
    run = kotlin.latency(tmp_path, "linear", {"x": X}, batch=3, profile=tmp_path / "profile")
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(LINEAR, abs=1e-5)
    record = run.record
    assert len(record["run_ns"]) == len(record["bind_ns"]) == len(record["copy_ns"]) >= 20
    assert min(record["run_ns"]) > 0 and len(record["profile_run_ns"]) == 10
    assert record["stop_reason"] in ("interval-reached", "time-limit")
    assert record["language_version"].startswith("Kotlin 2.")


@pytest.mark.parametrize("batch", [None, 1])
def test_types_come_back_bit_by_bit(kotlin: Program, tmp_path: Path, batch: int | None) -> None:
    for dtype in ("float16", "int64", "bool"):
        given = np.arange(6).reshape(2, 3).astype(dtype)
        run = kotlin.latency(tmp_path / dtype, f"identity-{dtype}", {"x": given}, batch=batch)
        assert run.code == 0, run.stderr
        (found,) = run.outputs().values()
        assert isinstance(found, np.ndarray) and found.tobytes() == given.tobytes()


def test_an_output_that_is_no_tensor_has_a_kind(kotlin: Program, tmp_path: Path) -> None:
    found = kotlin.latency(tmp_path, "gives-sequence", {"x": X}, batch=3).outputs()
    assert np.array_equal(found["y"], np.maximum(X, 0))
    assert isinstance(found["s"], NoTensor)


@pytest.mark.parametrize(
    ("model", "tensor", "batch", "words"),
    [
        ("identity-string", np.array([["a"]], object), None, "takes and gives no such tensor"),
        ("transposed", X, 2, "'y' has shape [4, 2], expected a first axis of the batch's 2 rows"),
        ("unknown", X, None, "NoSuchOperator"),
    ],
)
def test_what_it_cannot_is_bad_input(
    kotlin: Program, tmp_path: Path, model: str, tensor: np.ndarray, batch: int | None, words: str
) -> None:
    run = kotlin.latency(tmp_path, model, {"x": tensor}, batch=batch)
    assert (run.code, run.record["cause"]) == (2, "bad-input"), run.stderr
    assert words in run.record["message"] and run.stderr.startswith("kotlin: ")


def test_other_levels_and_providers_are_skipped(kotlin: Program, tmp_path: Path) -> None:
    run = kotlin.load(tmp_path, [0])
    assert (run.code, run.record["reason"]) == (3, "the runner in Kotlin has the level latency only")
    cell = infer_cell("kotlin", load=1.0)
    assert RUNTIMES.get("kotlin").supports(cell) == "the runner in Kotlin has the level latency only"
    write_tensors(tmp_path / "inputs", {"x": X})
    with pytest.raises(BadInput, match="execution provider 'cuda': kotlin has cpu"):
        kotlin.start(kotlin.plan(tmp_path, "linear", provider="cuda"), tmp_path)


def test_a_file_that_is_no_plan_is_refused(kotlin: Program, tmp_path: Path) -> None:
    run = kotlin.latency(tmp_path, "linear", {"x": X})
    whole = (tmp_path / "plan.bin").read_bytes()
    assert run.code == 0
    for content, words in (
        (b"no plan", "is no plan"),
        (whole[:8] + whole[11:7:-1] + whole[12:], "is of another byte order: mark 0x04030201"),
        (whole[:12] + b"\2" + whole[13:], "is of version 2, expected 1"),
        (whole[:-1], f"holds {len(whole) - 1} bytes, expected {len(whole)}"),
    ):
        (tmp_path / "other.bin").write_bytes(content)
        command = RUNTIMES.get("kotlin").command(kotlin.python, [str(tmp_path / "other.bin")])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and f"kotlin: {tmp_path / 'other.bin'}: {words}" in done.stderr
