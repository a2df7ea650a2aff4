"""Classifiers that are trained step by step: what they leave, and how they go on."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classify_cells import arguments, spec_of, write_cells

from step_worker_client import StepWorker, step_worker
from transect.domain.metrics import METRICS

TRAINED = ("transformer", "n-grams")


@pytest.fixture(scope="module")
def worker(torch_python: str) -> Iterator[StepWorker]:
    with step_worker(torch_python, Path(__file__).with_name("classify_worker.py")) as started:
        yield started


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_cells(tmp_path_factory.mktemp("cells"))


@pytest.fixture
def run(worker: StepWorker, folders: dict[str, Path], tmp_path: Path) -> Callable[..., Any]:
    """Run a cell into `tmp_path/OUT`; return its result."""

    def go(
        out: str,
        kind: str,
        hyperparameters: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        how: str = "classify",
        more: Any = (),
        **given: Any,
    ) -> dict[str, Any]:
        spec = spec_of(kind, hyperparameters, options, **given.pop("axes", {}))
        command = arguments(given.pop("cells", folders), spec, tmp_path / out, **given)
        code = worker(how, command, *more)
        found = tmp_path / out / "result.json"
        result = json.loads(found.read_text()) if found.is_file() else {}
        return result | {"code": code}

    return go


def probabilities(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "probabilities.npz") as stored:
        return dict(stored)


def assert_same_state(left: Path, right: Path) -> None:
    """Compare all arrays bit for bit, and the progress but for its times."""
    with np.load(left / "state.npz") as first, np.load(right / "state.npz") as second:
        assert first.files == second.files
        for name in set(first.files) - {"facts"}:
            assert np.array_equal(first[name], second[name]), name
        facts = [json.loads(stored["facts"].tobytes())["progress"] for stored in (first, second)]
    for progress in facts:
        for entry in progress["history"]:
            assert entry.pop("seconds") > 0
    assert facts[0] == facts[1]


@pytest.mark.parametrize("kind", TRAINED)
def test_a_cell_leaves_what_others_take(run, worker, folders, tmp_path, kind):
    result = run("one", kind, {"epochs": 3, "batch": 16, "learning_rate": 0.01})
    assert (result["code"], result["status"]) == (0, "ok")
    metrics = {metric["name"]: metric["value"] for metric in result["metrics"]}
    assert metrics.keys() <= METRICS.keys()
    details = result["details"]
    # It learns: three classes are equally frequent.
    assert metrics["accuracy"] == details["at_k"]["1"] > 0.5 > details["majority"]
    assert metrics["accuracy_at_3"] == details["at_k"]["3"] == 1
    assert [(e["epoch"], e["updates"]) for e in details["history"]] == [(1, 6), (2, 12), (3, 18)]
    assert (details["ended"], details["scored"]) == ("epochs", "test")
    assert (details["synthetic"], details["bayes_accuracy"]) == (True, 0.8)
    assert np.sum(details["confusion"]) == details["tickets"]["test"] == 50
    predicted = probabilities(tmp_path / "one")
    assert {part: shares.shape for part, shares in predicted.items()} == {"validation": (40, 3), "test": (50, 3)}
    x = np.load(folders["encode"] / "x_test.npy")
    model = str(tmp_path / "one" / "model.onnx")
    assert np.allclose(worker("outputs", model, x.tolist()), predicted["test"], atol=1e-6)
    # Any batch and any length: words that are not there count for nothing.
    shorter = x[np.count_nonzero(x, axis=1) <= 5][:1, :5]
    longer = np.pad(shorter, ((0, 0), (0, 7)))
    found = [worker("outputs", model, words.tolist()) for words in (shorter, longer)]
    assert np.allclose(*found, atol=1e-6)


@pytest.mark.parametrize(("kind", "options"), [("transformer", {"dropout": 0.2}), ("n-grams", {"clip": 1.0})])
def test_a_longer_run_is_that_of_one_never_interrupted(run, tmp_path, kind, options):
    whole = run("whole", kind, {"epochs": 5, "batch": 16}, options)
    run("short", kind, {"epochs": 2, "batch": 16}, options)
    long = run("long", kind, {"epochs": 5, "batch": 16}, options, shorter=tmp_path / "short")
    assert whole["status"] == long["status"] == "ok"
    assert_same_state(tmp_path / "whole", tmp_path / "long")
    unbroken, resumed = probabilities(tmp_path / "whole"), probabilities(tmp_path / "long")
    assert all(np.array_equal(unbroken[part], resumed[part]) for part in unbroken)
    model = [(tmp_path / name / "model.onnx").read_bytes() for name in ("whole", "long")]
    assert model[0] == model[1]


@pytest.mark.parametrize("hyperparameters", [{"epochs": 4}, {"updates": 21}])
def test_a_killed_run_goes_on_where_its_state_is(run, tmp_path, hyperparameters):
    hyperparameters |= {"batch": 16}
    run("whole", "transformer", hyperparameters)
    result = run("killed", "transformer", hyperparameters, how="killed", more=[3])
    assert result["code"] == -signal.SIGKILL and "status" not in result
    with np.load(tmp_path / "killed" / "state.npz") as stored:
        assert json.loads(stored["facts"].tobytes())["progress"]["epoch"] == 2
    assert run("killed", "transformer", hyperparameters)["status"] == "ok"
    assert_same_state(tmp_path / "whole", tmp_path / "killed")
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == [
        "model.onnx",
        "pipeline.json",
        "predict.onnx",
        "probabilities.npz",
        "result.json",
        "spec.json",
        "state.npz",
    ]


def test_patience_ends_training_and_tells_with_the_best_epoch(run, tmp_path, folders):
    hyperparameters = {"epochs": 60, "batch": 8, "learning_rate": 0.03}
    result = run("one", "transformer", hyperparameters, {"patience": 2})
    details = result["details"]
    losses = [entry["validation_loss"] for entry in details["history"]]
    best = details["best_epoch"]
    assert details["ended"] == "patience" and len(losses) == best + 2 < 60
    assert losses[best - 1] == min(losses)
    valid = {metric["name"]: metric["value"] for metric in result["metrics"]}["validation_log_loss"]
    assert valid == pytest.approx(min(losses), rel=1e-6)
    # Nothing is left to do for a longer one.
    longer = run("two", "transformer", hyperparameters | {"epochs": 90}, {"patience": 2}, shorter=tmp_path / "one")
    assert longer["details"]["ended"] == "patience"
    assert len(longer["details"]["history"]) == len(losses)


@pytest.mark.parametrize("kind", TRAINED)
def test_a_run_that_diverges_keeps_its_last_good_state(run, tmp_path, kind):
    hyperparameters = {"epochs": 3, "batch": 16, "optimiser": "sgd"}
    good = run("good", kind, hyperparameters | {"learning_rate": 0.01})
    assert good["status"] == "ok"
    result = run("bad", kind, hyperparameters | {"learning_rate": 1e30})
    assert (result["status"], result["cause"]) == ("failed", "diverged")
    assert result["metrics"] == [] and "epoch 1" in result["message"]
    assert result["details"]["kept_epochs"] == 0
    with np.load(tmp_path / "bad" / "state.npz") as stored:
        assert all(np.isfinite(stored[name]).all() for name in stored.files if name != "facts")
    assert not (tmp_path / "bad" / "model.onnx").exists()


def test_the_state_of_another_training_is_refused(run, tmp_path):
    run("short", "transformer", {"epochs": 1})
    for what, options, axes in (("options", {"dropout": 0.5}, {}), ("seed", {}, {"repeat": 1})):
        result = run(f"long-{what}", "transformer", {"epochs": 2}, options, axes=axes, shorter=tmp_path / "short")
        assert result["cause"] == "bad-input" and f"another training: {what}" in result["message"]
    result = run("less", "transformer", {"updates": 1}, shorter=tmp_path / "short")
    assert result["status"] == "ok" and result["details"]["history"][-1]["updates"] == 3
    run("three", "transformer", {"epochs": 3})
    result = run("two", "transformer", {"epochs": 2}, shorter=tmp_path / "three")
    assert "3 epochs, and 2" in result["message"]
    (tmp_path / "short" / "state.npz").write_bytes(b"PK half a file")
    result = run("broken", "transformer", {"epochs": 2}, shorter=tmp_path / "short")
    assert result["cause"] == "bad-input" and "no readable state" in result["message"]


def test_what_cannot_be_trained_says_so(run, tmp_path):
    empty = write_cells(tmp_path / "empty", {"train": 40, "test": 20})
    result = run("one", "transformer", {"epochs": 1}, {"patience": 2}, cells=empty)
    assert (result["cause"], "patience" in result["message"]) == ("bad-input", True)
    result = run("two", "transformer", {"epochs": 1, "heads": 3})
    assert result["cause"] == "bad-input" and "heads share the width" in result["message"]
    result = run("three", "n-grams", {"epochs": 1, "heads": 2})
    assert result["cause"] == "bad-input" and "options.heads" in result["message"]


def test_a_gpu_trains_or_is_missed(run, worker, tmp_path):
    axes = {"device": "cuda"}
    hyperparameters = {"epochs": 3, "batch": 16, "learning_rate": 0.01}
    result = run("one", "transformer", hyperparameters, axes=axes)
    if not worker("has_gpu"):
        assert (result["cause"], result["code"]) == ("missing-dependency", 1)
        return
    assert result["status"] == "ok" and result["details"]["at_k"]["1"] > 0.5
    longer = run("two", "transformer", hyperparameters | {"epochs": 5}, axes=axes, shorter=tmp_path / "one")
    assert [entry["epoch"] for entry in longer["details"]["history"]] == [1, 2, 3, 4, 5]
