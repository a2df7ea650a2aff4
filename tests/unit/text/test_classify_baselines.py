"""Classifiers that are fitted in one go: the same numbers in Python and ONNX, whatever classes are there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classify_cells import CLASSES, arguments, rows, spec_of, write_cells

from step_worker_client import StepWorker, step_worker

FITTED = ("tfidf", "mean-vectors")


@pytest.fixture(scope="module")
def worker(text_python: str) -> Iterator[StepWorker]:
    with step_worker(text_python, Path(__file__).with_name("classify_worker.py")) as started:
        yield started


@pytest.fixture
def run(worker: StepWorker, tmp_path: Path) -> Callable[..., Any]:
    """Run a cell on its own tickets; return its result and what it told of `test`."""

    def go(kind: str, cells: dict[str, Path], **given: Any) -> tuple[dict[str, Any], np.ndarray]:
        out = tmp_path / kind
        worker("classify", arguments(cells, spec_of(kind, **given), out))
        result = json.loads((out / "result.json").read_text())
        assert result["status"] == "ok", result["message"]
        with np.load(out / "probabilities.npz") as stored:
            return result, stored["test"]

    return go


def put(cells: dict[str, Path], part: str, x: np.ndarray, y: np.ndarray) -> None:
    np.save(cells["encode"] / f"x_{part}.npy", x)
    np.save(cells["encode"] / f"y_{part}.npy", y)


@pytest.mark.parametrize("kind", FITTED)
def test_onnx_tells_the_same(run, worker, tmp_path, kind):
    cells = write_cells(tmp_path / "cells", {"train": 300, "validation": 40, "test": 80})
    result, shares = run(kind, cells)
    accuracy = next(metric["value"] for metric in result["metrics"] if metric["name"] == "accuracy")
    assert accuracy > 0.5 > result["details"]["majority"] and result["details"]["converged"]
    x = np.load(cells["encode"] / "x_test.npy")
    assert (np.count_nonzero(x, axis=1) == 0).any(), "no empty ticket among these"
    model = str(tmp_path / kind / "model.onnx")
    assert np.allclose(worker("outputs", model, x.tolist()), shares, atol=1e-5)
    # A word more than once, a word alone, and columns of padding.
    few = np.array([[5, 5, 7], [5, 0, 0], [0, 0, 0]])
    wide = np.pad(few, ((0, 0), (0, 20)))
    found = [worker("outputs", model, words.tolist()) for words in (few, wide)]
    assert np.allclose(*found, atol=1e-6)
    pipeline = json.loads((tmp_path / kind / "pipeline.json").read_text())
    assert pipeline["classes"] == list(CLASSES) and pipeline["about"]["scores"]["accuracy"] == accuracy


@pytest.mark.parametrize("kind", [*FITTED, "majority"])
@pytest.mark.parametrize("classes", [1, 2])
def test_a_class_that_nothing_trains_is_never_told(run, tmp_path, kind, classes):
    cells = write_cells(tmp_path / "cells")
    put(cells, "train", *rows(60, 5, classes=classes))
    result, shares = run(kind, cells)
    assert result["details"]["unseen_classes"] == list(CLASSES[classes:])
    assert not shares[:, classes:].any() and np.allclose(shares.sum(axis=1), 1)
    # Two classes are told apart, not mixed up.
    metrics = {metric["name"]: metric["value"] for metric in result["metrics"]}
    assert np.isfinite(metrics["log_loss"])
    y = np.load(cells["encode"] / "y_test.npy")
    if classes == 2 and kind != "majority":
        seen = y < 2
        assert (shares.argmax(axis=1) == y)[seen].mean() > 0.6


def test_the_majority_tells_the_shares_of_the_training_part(run, tmp_path):
    cells = write_cells(tmp_path / "cells")
    x, _ = rows(10, 1)
    put(cells, "train", x, np.array([0] * 5 + [1] * 3 + [2] * 2))
    result, shares = run("majority", cells)
    assert np.allclose(shares, [0.5, 0.3, 0.2])
    assert not (tmp_path / "majority" / "model.onnx").exists()
    assert result["details"]["history"] == [] and result["details"]["ended"] is None
