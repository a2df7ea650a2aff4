"""ONNX Runtime training 1.19.2 in place of a portable training step's own graphs.

From the step's folder: the manifest, the state, `workload.json`, and an inference model of one of
PyTorch's exporters, `inference-EXPORTER.onnx`. Its artefacts are made anew by every run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from artifacts_of import Rule, generate
from engines import Skip
from moments import read_moments, write_moments
from session import session_options
from step_folder import Schedule, Step
from step_workload import read_step_workload
from tensors import BadInput

_HYPER = {"adamw": ("lr", "beta1", "beta2", "eps", "weight_decay"), "sgd": ("lr",)}


class OrtTrainer:
    """A `Module` and an `Optimizer` of onnxruntime.training.api. `exporter`: whose file it takes."""

    def __init__(self, given: argparse.Namespace, step: Step, exporter: str) -> None:
        if given.provider != "cpu":
            raise Skip(f"{given.provider}: this package has cpu only")
        if given.accumulate > 1:
            raise Skip("micro-batches: ONNX Runtime training adds up gradients, without a mean")
        self._step, self._source = step, given.step / f"inference-{exporter}.onnx"
        self._roles = _roles(given.step)
        self._rule = _rule(given, step)
        if not self._source.is_file():
            raise BadInput(f"{self._source}: no such file; workload.json tells what its exporter said")
        onnxruntime.set_default_logger_severity(3)
        self._options, told = session_options(given, None)
        not_set = ["provider_options"] if told.pop("provider_options", None) else []
        self.facts: dict[str, Any] = {
            "runtime_version": onnxruntime.__version__,
            "provider_used": "cpu",
            "session_options": told,
            "options_not_set": not_set,
            "run_includes": ["bind", "read"],
            "exporter": exporter,
        }
        self.session_ns = 0
        self.metrics: list[float] = []
        self._folder = tempfile.TemporaryDirectory(prefix="transect-ort-training-")
        self._given: dict[str, np.ndarray] = {}
        self._counter = 0

    def start(self, state: dict[str, np.ndarray]) -> None:
        """Make the artefacts with these weights, and the sessions."""
        self._given, self._counter = state, int(state[self._step.counter])
        begin = time.monotonic_ns()
        self.facts["repaired"] = generate(
            self._source, self._path, self._rule, self._model("parameter"), self._model("frozen")
        )
        self.facts["artifacts_ns"] = time.monotonic_ns() - begin
        begin = time.monotonic_ns()
        self._open("checkpoint")
        if self._rule.name == "adamw" and self._counter:
            self._put_moments(state)
        self.session_ns = time.monotonic_ns() - begin

    @property
    def _path(self) -> Path:
        return Path(self._folder.name)

    def _model(self, role: str) -> dict[str, np.ndarray]:
        """Return the model's tensors of a role, by their names in the model."""
        return {name.removeprefix("model."): self._given[name] for name, its in self._roles.items() if its == role}

    def _open(self, checkpoint: str) -> None:
        """Load a checkpoint of the folder and make the sessions over it."""
        from onnxruntime.training.api import CheckpointState, Module, Optimizer

        path = self._path
        self._state = CheckpointState.load_checkpoint(path / checkpoint)
        models = (path / "training_model.onnx", self._state, path / "eval_model.onnx")
        self._module = Module(*models, session_options=self._options)
        self._optimizer = Optimizer(path / "optimizer_model.onnx", self._module)
        self._module.train()

    def _save(self) -> Path:
        from onnxruntime.training.api import CheckpointState

        path = self._path / "now"
        CheckpointState.save_checkpoint(self._state, path, include_optimizer_state=True)
        return path

    def _put_moments(self, state: dict[str, np.ndarray]) -> None:
        """Begin with AdamW's averages of a state; the API takes them from a checkpoint alone.

        A first step with the rate 0 makes one that has places for them; it changes no weight.
        """
        rows = [np.zeros([1, *shape[1:]], dtype) for dtype, shape in self._step.data.values()]
        self._module(*rows)
        self._optimizer.set_learning_rate(0.0)
        self._optimizer.step()
        moments = {
            (kind, name.partition(f".{kind}.")[2]): array
            for name, array in state.items()
            for kind in ("exp_avg", "exp_avg_sq")
            if name.startswith(f"optimiser.{kind}.")
        }
        path = self._save()
        write_moments(path, moments, self._counter)
        self._open(path.name)

    def run(self, graph: str, feed: dict[str, np.ndarray]) -> tuple[int, int, int]:
        """Forward, backward and update: two sessions, arrays in and out."""
        x, y = (feed[name] for name in self._step.data)
        begin = time.monotonic_ns()
        loss, outputs = self._module(x, y)
        self._optimizer.set_learning_rate(float(feed["lr"]))
        self._optimizer.step()
        self._module.lazy_reset_grad()
        end = time.monotonic_ns()
        self._counter += 1
        accuracy = float((outputs.argmax(1) == y).mean())
        self.metrics = [float(loss), accuracy][: len(self._step.metrics)]
        return 0, end - begin, time.monotonic_ns() - end

    def state(self) -> dict[str, np.ndarray]:
        """Return the state by the manifest's names."""
        state = dict(self._given)
        state[self._step.counter] = np.array(self._counter, np.int64)
        for name, parameter in self._state.parameters:
            state[f"model.{name}"] = np.array(parameter.data)
        if self._rule.name == "adamw" and self._counter > int(self._given[self._step.counter]):
            for (kind, name), flat in read_moments(self._save()).items():
                key = f"optimiser.{kind}.{name}"
                state[key] = flat.reshape(state[key].shape)
        return state


def _roles(folder: Path) -> dict[str, str]:
    """Return role by name. Raises Skip for one that ONNX Runtime training has not, or not as PyTorch."""
    told = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    roles = {entry["name"]: entry["role"] for entry in told["state"]}
    for name, role in roles.items():
        if role == "buffer":
            raise Skip(f"state '{name}': ONNX Runtime training keeps another running variance")
        if role == "anchor":
            raise Skip(f"state '{name}': this runner has no proximal term")
    return roles


def _rule(given: argparse.Namespace, step: Step) -> Rule:
    """Return the optimiser, whose hyper-parameters but the rate are fixed in its graph.

    Raises Skip for one that ONNX Runtime training does not have.
    """
    every = tuple(name for names in _HYPER.values() for name in names)
    told = read_step_workload(given.step, step, (*every, "momentum"))
    if told.rule == "nesterov" or told.momentum:
        raise Skip("momentum: the operator SGDOptimizerV2 of ONNX Runtime training has none")
    if told.loss != "cross-entropy":
        raise Skip(f"loss '{told.loss}': its artefacts are made with cross-entropy here")
    if strange := sorted(step.hyper.keys() - {*_HYPER[told.rule]}):
        raise Skip(f"{strange[0]}: {told.rule} of ONNX Runtime training has none")
    schedule = Schedule(given.schedule, step, given.until)
    fixed = {name: value for name, value in schedule.at(0).items() if name != "lr"}
    for index in range(given.until):
        if any(schedule.at(index)[name] != value for name, value in fixed.items()):
            raise Skip(f"{given.schedule}: between steps only lr can change, got step {index}")
    return Rule(told.rule, **{name: float(value) for name, value in fixed.items()})
