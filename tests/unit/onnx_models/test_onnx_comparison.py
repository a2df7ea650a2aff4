"""The numeric check: differences, tolerance files, tensors. Needs numpy only."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.onnx_models.comparison import compare
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.results import fault, result
from transect.onnx_models.tensors import read_tensors, write_tensors


def test_equal_outputs_differ_by_nothing() -> None:
    reference = np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)
    found = compare(reference.copy(), reference)
    assert (found.max_abs_difference, found.max_rel_difference, found.top1_agreement) == (0, 0, 1)


def test_differences_are_the_largest_ones() -> None:
    reference = np.array([[1.0, 2.0], [4.0, 3.0]])
    found = compare(np.array([[1.0, 2.5], [4.0, 4.5]]), reference)
    assert found.max_abs_difference == 1.5
    assert found.max_rel_difference == 0.5
    assert found.top1_agreement == 0.5


def test_relative_difference_near_zero_is_taken_against_the_floor() -> None:
    found = compare(np.array([[1e-6, 10.0]]), np.array([[0.0, 10.0]]))
    assert found.rel_floor == pytest.approx(1e-2)
    assert found.max_rel_difference == pytest.approx(1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_that_are_not_finite_are_never_within_and_leave_no_metric(bad: float) -> None:
    reference = np.array([[np.inf if bad == np.inf else 1.0, 2.0]])
    found = compare(np.array([[bad, 2.0]]), reference)
    assert not found.within(1e30)
    assert found.metrics("max_abs_difference") == []


def test_other_shapes_are_refused() -> None:
    with pytest.raises(BadInput, match=r"\(2, 3\), expected \(2, 4\)"):
        compare(np.zeros((2, 3)), np.zeros((2, 4)))


def test_tensor_comes_back_as_written(tmp_path: Path) -> None:
    array = np.arange(12, dtype=np.float64).reshape(3, 4)
    write_tensors(tmp_path, {"input": array}, batch=2)
    assert np.array_equal(read_tensors(tmp_path)["input"], array)
    assert json.loads((tmp_path / "header.json").read_text())["batch"] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "header.json").unlink(), "no such file"),
        (lambda folder: (folder / "header.json").write_text("{"), "does not describe"),
        (lambda folder: (folder / "tensor-0.bin").unlink(), "header.json names it"),
        (lambda folder: (folder / "tensor-0.bin").write_bytes(b"1234"), "holds 4 bytes"),
    ],
)
def test_damaged_tensor_folder_is_named(tmp_path: Path, change: object, message: str) -> None:
    write_tensors(tmp_path, {"input": np.ones((2, 2))})
    assert callable(change)
    change(tmp_path)
    with pytest.raises(BadInput, match=message):
        read_tensors(tmp_path)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (MemoryError("full"), "out-of-memory"),
        (ModuleNotFoundError("no torch"), "missing-dependency"),
        (BadInput("what"), "bad-input"),
        (RuntimeError("what"), "crash"),
    ],
)
def test_exceptions_become_causes(error: Exception, cause: str) -> None:
    found = fault(error)
    assert (found["status"], found["cause"]) == ("failed", cause)
    assert found["message"] == f"{type(error).__name__}: {error}"


def test_result_refuses_a_metric_outside_the_registry() -> None:
    with pytest.raises(BadInput, match="unknown metric"):
        result(metrics=[{"name": "speed", "value": 1.0}])


@pytest.mark.parametrize("name", EXPORTERS.names())
def test_every_exporter_says_what_it_takes(name: str) -> None:
    exporter = EXPORTERS.get(name)
    cell = Cell.of(stage="model", workload="mlp", framework=exporter.framework, exporter=name)
    assert exporter.supports(cell) is None
    trained = Cell.of(stage="export", workload="iris-mlp-ce", framework=exporter.framework, exporter=name)
    assert (exporter.supports(trained) is None) == (exporter.framework == "torch")
    assert "numpy" in (exporter.supports(cell.model_copy(update={"framework": "numpy"})) or "")
    assert "fp64" in (exporter.supports(cell.model_copy(update={"precision": "fp64"})) or "")


def test_both_exporters_are_found() -> None:
    assert {"dynamo", "torchscript"} <= set(EXPORTERS.names())
