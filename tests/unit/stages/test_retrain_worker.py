"""Retrain cells as their payload runs them, with a runner that does what a test says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from checkouts import ROOT
from transect.domain.axes.retrain import RetrainCell
from transect.domain.files import sha256_file
from transect.onnx_models.tensors import write_tensors
from transect.payloads import retrain as worker
from transect.payloads import retrain_turn
from transect.payloads.retrain_turn import CHECKPOINT
from transect.portable_step.manifest import (
    MANIFEST,
    Data,
    Graph,
    Hyper,
    Manifest,
    Metric,
    Output,
    StateTensor,
    read_manifest,
)
from transect.portable_step.state import read_state, write_state
from transect.runtimes import RUNTIMES
from transect.stages.retrain import Retrain

pytestmark = pytest.mark.env
PROGRAM = ROOT / "tests" / "data" / "runners" / "training.py"
STEPS, RATE, START = 8, 0.1, np.array([3.0, 4.0], np.float32)
NAME = "r0.b2.a1.s8.old"
SPEC = {
    "problem": {"name": NAME, "repeat": 0, "batch": 2, "accumulate": 1, "steps": STEPS},
    "checkpoint_every": 2,
    "options": {"intra_op_num_threads": 1},
}


class Training:
    """The runtime that is tests/data/runners/training.py."""

    environment, trains, providers = "base", True, ("cpu",)

    def __init__(self, behave: str) -> None:
        self.behave = behave

    def supports(self, cell):
        return None

    def command(self, python: str, arguments: list[str]) -> list[str]:
        return [python, str(PROGRAM), *arguments, self.behave]

    def library(self, python: str) -> None:
        return None


@pytest.fixture(autouse=True)
def runtimes(monkeypatch):
    """Runtimes by what they do, `right` and others, in place of the registry's."""
    behaves = ("right", "wrong", "weights", "diverge", "killed", "stuck", "refuse", "short", "lie")
    known = {name: Training(name) for name in behaves}
    get = RUNTIMES.get
    monkeypatch.setattr(type(RUNTIMES), "get", lambda self, name, *more: known.get(name) or get(name, *more))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))


def model_bytes(inputs: list[str], outputs: list[str]) -> bytes:
    """Return an ONNX file that has these ends, floats of no known shape, and nothing in between."""

    def field(number: int, content: bytes) -> bytes:
        assert len(content) < 128
        return bytes([number << 3 | 2, len(content)]) + content

    def end(name: str) -> bytes:
        return field(1, name.encode()) + field(2, field(1, b"\x08\x01"))

    graph = b"".join([*(field(11, end(name)) for name in inputs), *(field(12, end(name)) for name in outputs)])
    return field(7, graph)


@pytest.fixture
def step(tmp_path: Path) -> Path:
    """The folder of a step cell whose step is w -= lr w."""
    folder = tmp_path / "step-cell"
    graphs = {
        name: Graph(file=f"{name}.onnx", inputs=("x",), outputs=("loss", "next.step", "next.model.w"))
        for name in ("step", "eval", "infer")
    }
    (folder / "step").mkdir(parents=True)
    (folder / "step" / "step.onnx").write_bytes(model_bytes(["x"], ["loss", "next.step", "next.model.w"]))
    manifest = Manifest(
        step_graph=sha256_file(folder / "step" / "step.onnx"),
        state_file="state.safetensors",
        data=(Data(name="x", dtype="float32", shape=("batch",), target=False),),
        hyper=(Hyper(name="lr", dtype="float64", default=RATE),),
        seed=None,
        state=(
            StateTensor(name="step", role="counter", dtype="int64", shape=(), next="next.step"),
            StateTensor(name="model.w", role="parameter", dtype="float32", shape=(2,), next="next.model.w"),
        ),
        metrics=(Metric(name="loss", dtype="float32"),),
        outputs=(Output(name="output", dtype="float32", shape=("batch",)),),
        graphs=graphs,
    )
    (folder / "step" / MANIFEST).write_text(manifest.to_json())
    start = {"step": np.array(0), "model.w": START}
    write_state(folder / "states" / "state-0.safetensors", start, manifest)
    write_tensors(folder / "data", {"x": START})
    write_tensors(folder / "test", {"x": START, "y": np.zeros(50, np.int64)})
    problem = folder / "problems" / NAME
    problem.mkdir(parents=True)
    np.zeros((STEPS, 2), np.int64).tofile(problem / "order.bin")
    (problem / "schedule.json").write_text(json.dumps({"lr": RATE}))
    weights = START.astype(float) * (1 - RATE) ** np.arange(STEPS + 1)[:, None]
    np.savez(
        problem / "path.npz",
        loss=(weights[:-1] ** 2).sum(axis=1) / 2,
        tolerance=np.full(STEPS, 1e-5),
        weights_tolerance=1e-5,
        score=0.8,
        **{"weights/w": weights[-1]},
    )
    facts = {
        "base_scores": {"0": 0.5},
        "score": "accuracy",
        "tolerance_rule": "a rule",
        "trained_on": "train",
        "rows": 50,
        "problems": {NAME: {"score": 0.8, "not_checkable_from": None}},
    }
    (folder / "facts.json").write_text(json.dumps(facts))
    return folder


def run(step: Path, runtime: str, out: Path, monkeypatch, accuracy: float = 0.9):
    monkeypatch.setattr(worker, "evaluate", lambda *_: {"loss": 0.1, "accuracy": accuracy})
    out.mkdir(exist_ok=True)
    cell = RetrainCell(workload="iris-mlp-ce", runtime=runtime, provider="cpu", optimiser="sgd", steps=STEPS, batch=2)
    program = {"python": sys.executable, "wrap": [], "variables": {}}
    programs = dict.fromkeys(cell.runtimes, program)
    return worker.retrain_cell(cell, SPEC, step, out, programs)


def values(found) -> dict[str, float]:
    return {metric["name"]: metric["value"] for metric in found["metrics"]}


TIMES = {"step_time", "samples_per_second", "first_step_time", "session_time", "checkpoint_time"}


def test_a_right_runner_is_timed_and_scored(step, tmp_path, monkeypatch):
    found = run(step, "right", tmp_path / "out", monkeypatch)
    assert found["status"] == "ok", found["message"]
    metrics = values(found)
    assert metrics["step_time"] == pytest.approx(4e-6) and metrics["samples_per_second"] == pytest.approx(5e5)
    assert (metrics["accuracy"], metrics["accuracy_before"]) == (0.9, 0.5)
    assert metrics["accuracy_ci_low"] < 0.9 < metrics["accuracy_ci_high"]
    assert metrics["equality_ratio"] < 1 and metrics["weights_equality_ratio"] < 1 and metrics.keys() >= TIMES
    with np.load(tmp_path / "out" / "samples.npz") as series:
        assert len(series["step_time"]) == len(series["loss"]) == STEPS
        assert series["reference_loss"] == pytest.approx(series["loss"], abs=1e-5)
    assert found["details"]["resumed_from"] == [] and found["details"]["steps_not_told"] == 0


@pytest.mark.parametrize(
    ("behave", "message"), [("wrong", "at step 3, PyTorch's in float64 is"), ("weights", "the final weights are")]
)
def test_a_wrong_runner_is_a_wrong_result_and_no_time_is_kept(step, tmp_path, monkeypatch, behave, message):
    found = run(step, behave, tmp_path / "out", monkeypatch)
    assert (found["status"], found["cause"]) == ("failed", "wrong-result")
    assert message in found["message"]
    assert not TIMES & values(found).keys() and "accuracy" not in values(found)
    assert not any(name.endswith("_time") for name in found["samples"])


def test_a_diverged_runner_says_what_the_float64_path_does(step, tmp_path, monkeypatch):
    found = run(step, "diverge", tmp_path / "out", monkeypatch)
    assert (found["status"], found["cause"]) == ("failed", "diverged")
    assert found["message"].startswith("diverge: diverged: the loss of step 3 is inf")
    assert found["message"].endswith("; PyTorch's float64 path stays finite")
    assert values(found)["equality_ratio"] < 1 and "loss" in found["samples"]


@pytest.mark.parametrize(("behave", "message"), [("short", "reported 7 losses, expected 8"), ("lie", "ran on cuda")])
def test_a_record_that_is_not_of_this_cell_is_no_result(step, tmp_path, monkeypatch, behave, message):
    with pytest.raises(ValueError, match=message):
        run(step, behave, tmp_path / "out", monkeypatch)


def test_a_killed_runner_goes_on_from_its_checkpoint(step, tmp_path, monkeypatch):
    found = run(step, "killed", tmp_path / "out", monkeypatch)
    assert found["status"] == "ok", found["message"]
    details = found["details"]
    # Checkpoints at 2, 4 and 6 each ended it; what it told of steps before 6 died with it.
    assert details["turns"][0]["killed"] == 3 and details["resumed_from"] == [6]
    assert details["steps_not_told"] == 6
    assert values(found)["weights_equality_ratio"] < 1


def test_what_the_program_of_a_killed_attempt_left_is_gone_on_with(step, tmp_path, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        # The payload dies as its program does, after the checkpoint at 2.
        patched.setattr(retrain_turn, "train_record", lambda *_: sys.exit(9))
        with pytest.raises(SystemExit):
            run(step, "killed", out, monkeypatch)
    assert [*out.glob(Retrain.keeps[-1])] == [out / "turn-0" / "state-0.bin"]
    found = run(step, "killed", out, monkeypatch)
    assert found["status"] == "ok", found["message"]
    assert found["details"]["turns"][0]["killed"] == 2


def test_runtimes_in_turn_compute_one_path(step, tmp_path, monkeypatch):
    found = run(step, "right>killed", tmp_path / "out", monkeypatch)
    assert found["status"] == "ok", found["message"]
    turns = [(turn["runtime"], turn["begin"], turn["end"]) for turn in found["details"]["turns"]]
    assert turns == [("right", 0, 4), ("killed", 4, 8)]
    assert "step_time" not in values(found), "several runtimes have no common time"
    assert run(step, "right>wrong", tmp_path / "other", monkeypatch)["cause"] == "wrong-result"


def test_what_an_earlier_attempt_did_is_not_done_again(step, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run(step, "right>right", out, monkeypatch)
    whole = np.load(out / "samples.npz")["loss"]
    # As a kill within the second turn leaves it: no record of it, the state of step 6.
    (out / "turn-1.json").unlink()
    manifest = read_manifest(step / "step")
    weights = START * np.float32(1 - RATE) ** 6
    write_state(out / CHECKPOINT, {"step": np.array(6), "model.w": weights}, manifest)
    (out / "turn-0.json").write_text((out / "turn-0.json").read_text().replace("1.2.3", "kept"))
    found = run(step, "right>right", out, monkeypatch)
    assert found["status"] == "ok", found["message"]
    assert found["details"]["turns"][0]["runtime_version"] == "kept"
    assert found["details"]["resumed_from"] == [6] and found["details"]["steps_not_told"] == 2
    assert int(read_state(out / CHECKPOINT, manifest)["step"]) == STEPS
    again = np.load(out / "samples.npz")["loss"]
    assert np.isnan(again[4:6]).all() and again[[0, 3, 6, 7]] == pytest.approx(whole[[0, 3, 6, 7]])


def test_a_killed_driver_loses_no_checkpoint_and_leaves_no_work_behind(step, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("transect.payloads.retrain_turn.train_record", killed)
        with pytest.raises(KeyboardInterrupt):
            run(step, "killed", out, monkeypatch)
    assert not (out / CHECKPOINT).exists()
    # As the engine clears the folder before it starts the payload again.
    kept = {path for name in Retrain.keeps for path in out.glob(name)}
    assert {path.name for path in kept} == {"state-0.bin"}
    again = run(step, "right", out, monkeypatch)
    assert (again["status"], again["details"]["resumed_from"]) == ("ok", [2])
    # And as a kill leaves it right after a turn's record was written.
    (out / "turn-0").mkdir()
    assert run(step, "right", out, monkeypatch)["status"] == "ok"
    assert not (out / "turn-0").exists()


@pytest.mark.parametrize("content", [b"", b"half a file", None])
def test_a_checkpoint_that_cannot_be_used_is_begun_without(step, tmp_path, monkeypatch, content):
    out = tmp_path / "out"
    out.mkdir()
    if content is None:
        another_step = read_manifest(step / "step")
        object.__setattr__(another_step, "step_graph", "0" * 64)
        write_state(out / CHECKPOINT, {"step": np.array(6), "model.w": START}, another_step)
    else:
        (out / CHECKPOINT).write_bytes(content)
    found = run(step, "right", out, monkeypatch)
    assert found["status"] == "ok" and found["details"]["steps_not_told"] == 0
