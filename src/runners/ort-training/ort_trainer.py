"""ONNX Runtime training 1.19.2 in place of a portable training step's own graphs.

From the step's folder: the roles of its state, `workload.json`, and an inference model of one of
PyTorch's exporters, `inference-EXPORTER.onnx`. Its artefacts are made anew by every run.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from artifacts_of import generate
from engines import BadInput, Skip
from moments import read_moments, write_moments
from plan import DTYPES, Plan, Role
from session import session_options
from workload import read_step_workload


class OrtTrainer:
    """A `Module` and an `Optimizer` of onnxruntime.training.api. `exporter`: whose file it takes."""

    def __init__(self, plan: Plan, exporter: str) -> None:
        if plan.accumulate > 1:
            raise Skip("micro-batches: ONNX Runtime training adds up gradients, without a mean")
        folder = Path(plan.text(Role.STEP_FOLDER))
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self._roles, self._adamw = {entry["name"]: entry["role"] for entry in manifest["state"]}, _adamw_of(plan)
        source = folder / f"inference-{exporter}.onnx"
        if not source.is_file():
            raise BadInput(f"{source}: no such file; workload.json tells what its exporter said")
        self._data = list(plan.of(Role.DATA))
        self._rate = next(entry.number for entry in plan.of(Role.HYPER) if entry.name == "lr")
        self._numbers = {entry.name: entry.number for entry in plan.of(Role.STATE)}
        self._given = {entry.name: entry.array() for entry in plan.of(Role.STATE)}
        self._first = self._updates = plan.first_step
        self.metrics: list[float] = []
        onnxruntime.set_default_logger_severity(3)
        self._options, told = session_options(plan, "")
        self.facts: dict[str, Any] = {
            "runtime_version": onnxruntime.__version__,
            "provider_used": "cpu",
            "session_options": told,
            "options_not_set": ["provider_options"] if any(plan.of(Role.PROVIDER_OPTION)) else [],
            "run_includes": ["bind", "read"],
            "exporter": exporter,
        }
        self._folder = tempfile.TemporaryDirectory(prefix="transect-ort-training-")
        self._path = Path(self._folder.name)
        self._start(source)

    def _start(self, source: Path) -> None:
        """Make the artefacts with these weights, and the sessions."""
        begin = time.monotonic_ns()
        self.facts["repaired"] = generate(
            source, self._path, self._adamw, self._model("parameter"), self._model("frozen")
        )
        self.facts["artifacts_ns"] = time.monotonic_ns() - begin
        begin = time.monotonic_ns()
        self._open("checkpoint")
        if self._adamw is not None and self._first:
            self._put_moments()
        self.facts["session_ns"] = time.monotonic_ns() - begin

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

    def _put_moments(self) -> None:
        """Begin with AdamW's averages of a state; the API takes them from a checkpoint alone.

        A first step with the rate 0 makes one that has places for them; it changes no weight.
        """
        self._module(*(np.zeros([1, *entry.shape[1:]], DTYPES[entry.dtype]) for entry in self._data))
        self._optimizer.set_learning_rate(0.0)
        self._optimizer.step()
        moments = {}
        for name, array in self._given.items():
            if name.startswith("optimiser."):
                _, kind, parameter = name.split(".", 2)
                moments[kind, parameter] = array
        path = self._save()
        write_moments(path, moments, self._first)
        self._open(path.name)

    def run(self, graph: str, feed: dict[int, np.ndarray]) -> tuple[int, int, int]:
        """Forward, backward and update: two sessions, arrays in and out."""
        x, y = (feed[entry.number] for entry in self._data)
        begin = time.monotonic_ns()
        loss, outputs = self._module(x, y)
        self._optimizer.set_learning_rate(float(feed[self._rate]))
        self._optimizer.step()
        self._module.lazy_reset_grad()
        end = time.monotonic_ns()
        self._updates += 1
        accuracy = float((outputs.argmax(1) == y).mean())
        self.metrics = [float(loss), accuracy]
        return 0, end - begin, time.monotonic_ns() - end

    def state(self) -> dict[int, np.ndarray]:
        """Return the state."""
        state = self._given | {"step": np.array(self._updates, np.int64)}
        for name, parameter in self._state.parameters:
            state[f"model.{name}"] = np.array(parameter.data)
        if self._adamw is not None and self._updates > self._first:
            for (kind, name), flat in read_moments(self._save()).items():
                key = f"optimiser.{kind}.{name}"
                state[key] = flat.reshape(state[key].shape)
        return {number: state[name] for name, number in self._numbers.items()}


def _adamw_of(plan: Plan) -> dict[str, float] | None:
    """Return AdamW's hyper-parameters but the rate, which are fixed in its graph; None for SGD.

    Raises Skip for what ONNX Runtime training does not have.
    """
    _, optimiser, loss = read_step_workload(plan)
    if loss != "cross-entropy":
        raise Skip(f"loss '{loss}': its artefacts are made with cross-entropy here")
    operator, fixed = "SGDOptimizerV2", {}
    if optimiser == "adamw":
        operator, fixed = "AdamWOptimizer", {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
    for entry in plan.of(Role.HYPER):
        values = entry.array()
        if entry.name == "lr":
            continue
        if entry.name not in fixed:
            raise Skip(f"{entry.name}: the operator {operator} of ONNX Runtime training has none")
        if (values != values[:1]).any():
            raise Skip(f"{entry.name}: between steps only lr can change")
        if len(values):
            fixed[entry.name] = float(values[0])
    return fixed or None
