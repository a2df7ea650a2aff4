"""Mode `train` of what trains without a portable step's graphs: PyTorch, and ONNX Runtime training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from train_runs import Run, tensors

from checkouts import environment_python
from transect.domain.cell import Cell
from transect.runtimes import RUNTIMES, cannot_train
from warm import warm

TORCH, ORT = ("torch-eager", "torch-compile"), ("ort-training", "ort-training-torchscript")
PEERS = (*TORCH, *ORT)
OPTIMISERS = ("sgd", "momentum", "nesterov", "adamw")
# Of float32 against PyTorch in float64 on the same rows.
BATCH, STEPS = 8, 20
TOLERANCE = {"rtol": 2e-5, "atol": 1e-6}

Make = Callable[[str, str], Run]


@pytest.fixture(scope="module")
def made(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each optimiser: see train_peer_steps.py."""
    folder = tmp_path_factory.mktemp("train-peers")
    helper = Path(__file__).with_name("train_peer_steps.py")
    warm(torch_python).check(helper, folder)
    return folder


def _cell(runtime: str, **axes: Any) -> Cell:
    given = {
        "stage": "retrain",
        "workload": "iris-mlp-ce",
        "runtime": runtime,
        "provider": "cpu",
        "optimiser": "adamw",
        "steps": STEPS,
        "batch": BATCH,
    }
    return Cell.of(**given | axes)


@pytest.fixture
def make(made: Path, tmp_path: Path) -> Make:
    """Return what makes a folder in which a runtime trains with an optimiser."""
    numbers = iter(range(99))

    def _make(runtime: str, optimiser: str) -> Run:
        if reason := cannot_train(runtime, _cell(runtime)):  # type: ignore[arg-type]
            pytest.skip(reason)
        python = environment_python(RUNTIMES.get(runtime).environment, tmp_path)
        run = Run(runtime, python, tmp_path / str(next(numbers)), made / optimiser)
        run.arguments["batch"], run.arguments["until"] = BATCH, STEPS
        run.arguments["schedule"] = run.folder / "schedule.json"
        return run

    return _make


def _expected(run: Run, which: str = "plain") -> list[float]:
    losses: list[float] = json.loads((run.made / "expected.json").read_text())[which]
    return losses


# Compiling takes seconds: once is enough, the optimisers are those of eager mode.
CASES = [
    (runtime, optimiser)
    for runtime in PEERS
    for optimiser in OPTIMISERS
    if runtime != "torch-compile" or optimiser == "adamw"
]


@pytest.mark.parametrize(("runtime", "optimiser"), CASES)
def test_losses_are_those_of_pytorch_in_float64(make: Make, runtime: str, optimiser: str) -> None:
    run = make(runtime, optimiser)
    if runtime in ORT and optimiser in ("momentum", "nesterov"):
        code, record, _ = run.train()
        assert (code, record["status"]) == (3, "skipped")
        assert "SGDOptimizerV2" in record["reason"]
        assert not run.checkpoint.exists()
        return
    record = run.good()
    np.testing.assert_allclose(record["losses"], _expected(run), **TOLERANCE)
    assert len(record["metrics"]["accuracy"]) == STEPS
    assert record["runner"] == runtime
    assert tensors(run.checkpoint)["step"] == STEPS


@pytest.mark.parametrize("runtime", ["torch-eager", *ORT])
def test_goes_on_with_what_was_left(make: Make, runtime: str) -> None:
    whole, broken = make(runtime, "adamw"), make(runtime, "adamw")
    unbroken = whole.good(fresh=True)
    first = broken.good(until=7)
    second = broken.good(until=STEPS)
    assert (first["first_step"], second["first_step"]) == (0, 7)
    assert first["losses"] + second["losses"] == unbroken["losses"]
    assert broken.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_runtimes_take_turns(make: Make, optimiser: str) -> None:
    losses, before = [], None
    for turn, runtime in enumerate(("ort-training", "torch-eager", "ort-training-torchscript"), 1):
        run = make(runtime, optimiser)
        if before is not None:
            shutil.copy(before, run.checkpoint)
        losses += run.good(until=min(7 * turn, STEPS))["losses"]
        before = run.checkpoint
    np.testing.assert_allclose(losses, _expected(run), **TOLERANCE)


def test_ort_training_says_what_it_lacks(make: Make) -> None:
    code, record, _ = make("ort-training", "adamw").train(accumulate=2)
    assert (code, record["status"]) == (3, "skipped")
    assert "micro-batches" in record["reason"]


@pytest.mark.parametrize("runtime", ["torch-eager", "ort-training"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parameters": {"weight_decay": 0.1, "decay": "matrices"}}, "decay 'matrices': this runner has one group"),
        ({"parameters": {"label_smoothing": 0.1}}, "label_smoothing 0.1: this runner has none"),
        ({"own_loss": True}, "the loss is a function of the study's own"),
    ],
)
def test_what_only_the_steps_graphs_have_is_skipped(
    make: Make, runtime: str, changes: dict[str, Any], words: str
) -> None:
    run = make(runtime, "adamw")
    run.edit("step/workload.json", lambda told: told.update(changes))
    code, record, _ = run.train()
    assert (code, record["status"]) == (3, "skipped") and words in record["reason"]


@pytest.mark.parametrize("runtime", ["torch-eager", "ort-training"])
def test_loss_that_is_not_finite_ends_it(make: Make, runtime: str) -> None:
    run = make(runtime, "sgd")
    rates = [0.05] * 6 + [1e38] * (STEPS - 6)
    code, record, _ = run.train(schedule=run.write("rates.json", {"lr": rates}), checkpoint_every=5)
    assert (code, record["cause"]) == (0, "diverged")
    assert tensors(run.checkpoint)["step"] == 5
    np.testing.assert_allclose(record["losses"][:6], _expected(run)[:6], **TOLERANCE)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"optimiser": "nesterov"}, "nesterov"),
        ({"accumulate": 2}, "mean"),
        ({"clip": 1.0}, "clipped"),
        ({"workload": "images-resnet20"}, "batch norm"),
        ({"provider": "cuda"}, "CPU"),
    ],
)
def test_planning_knows_what_ort_training_lacks(axes: dict[str, Any], words: str) -> None:
    reason = cannot_train("ort-training", _cell("ort-training", **axes))  # type: ignore[arg-type]
    assert reason is not None and words in reason
