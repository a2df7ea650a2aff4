"""Programs of the portable training step, in any language that trains: a process for each turn, as a device would run one.

The cell takes a cell of stage `export-training-step` (role `step`). A process gets what a device would have: the step's
graphs, the rows of its client's turn, and the state: the weights that it is given, the optimiser at rest. Turns share
nothing, and each has one thread: that `threads` of them run at once changes no number.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.federate import FederateCell
from transect.domain.errors import BadInput, MissingDependency, TransectError, Unsupported, WrongResult
from transect.domain.files import write_atomic
from transect.domain.record import Cause
from transect.federated.engines import ENGINES, Engine, Session, Task, Turn, Turned
from transect.federated.flat import arrays_of, flat_of
from transect.federated.methods import METHODS
from transect.onnx_models.tensors import write_tensors
from transect.portable_step.manifest import Manifest, read_manifest
from transect.portable_step.state import read_state, write_state
from transect.runtimes import RUNTIMES
from transect.runtimes.options import EQUAL, session_options, thread_variables
from transect.runtimes.programs import start_command
from transect.runtimes.training import train_record
from transect.runtimes.training_plans import Training
from transect.training.models import Model, no_module
from transect.training.module_model import ModuleModel
from transect.training.optimisers import OWN_OPTIMISER
from transect.training.workloads import Parameters

# Of what a program said, the last lines go into an error, cut to so many characters each.
_LINES, _CHARACTERS = 5, 300
_ERRORS: Mapping[str | None, type[TransectError]] = {
    Cause.BAD_INPUT: BadInput,
    Cause.MISSING_DEPENDENCY: MissingDependency,
    Cause.DIVERGED: WrongResult,
}


@ENGINES.register("onnx")
class OnnxEngine(Engine):
    """Runtimes that clients have by turns: of n, a client has the one at its number modulo n."""

    def builds(self, cell: FederateCell, model: Model, parameters: Parameters) -> str | None:
        """Whatever becomes a portable step that computes what its model does."""
        if cell.precision != "fp32":
            return f"an exported step has fp32, not {cell.precision}"
        if parameters.optimiser == OWN_OPTIMISER:
            return "an exported step updates by a rule of transect's, not by what a function of the user's makes"
        if isinstance(model, ModuleModel):
            return f"torch scores {model.what}, and is not there where programs are started"
        method = METHODS.get(cell.method)
        if method.corrects:
            return f"a step of {cell.method} has a correction of its gradients, for which an exported step has no input"
        other = [name for name in cell.runtimes if method.pulls and not RUNTIMES.get(name).uses_step]
        if other:
            return f"{other[0]} does not run the exported step itself, which alone has the pull of {cell.method}"
        return no_module(model)

    @contextmanager
    def session(self, task: Task) -> Iterator[Session]:
        """Raises BadInput for a step that is not the model's."""
        step, work = task.folders["step"] / "step", task.out / "turns"
        manifest = read_manifest(step)
        _check_model(step, manifest, task.model)
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            yield _Session(task=task, step=step, manifest=manifest, work=work)
        finally:
            shutil.rmtree(work, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class _Session(Session):
    task: Task
    step: Path
    manifest: Manifest
    work: Path

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turned]:
        """Run `threads` programs at once."""
        pool = ThreadPoolExecutor(self.task.cell.threads)
        try:
            yield from pool.map(self._turned, turns, count())
        finally:
            # Where one has failed, those that have not begun do not begin.
            pool.shutdown(cancel_futures=True)

    def _turned(self, turn: Turn, place: int) -> Turned:
        names = self.task.cell.runtimes
        runtime, folder = names[turn.client % len(names)], self.work / str(place)
        where = f"turn {turn.number} (client {turn.client}, {runtime})"
        try:
            return self._train(turn, runtime, folder, where)
        except BadInput as error:
            raise BadInput(*(f"{where}: {line}" for line in error.args)) from None
        except (FileNotFoundError, PermissionError) as error:
            raise MissingDependency(f"{where}: {error.filename}: {error.strerror}") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _train(self, turn: Turn, runtime: str, folder: Path, where: str) -> Turned:
        training, program = self._training(turn, folder), self.task.programs[runtime]
        command = [*program["wrap"], *start_command(runtime, program["python"], training.plan())]
        variables = os.environ | thread_variables(1) | program["variables"]
        ended = subprocess.run(
            command, env=variables, check=False, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        record = train_record(runtime, training.out, ended.returncode, self.step, training.checkpoint)
        if record["status"] == "skipped":
            raise Unsupported(f"{where}: {record['reason']}")
        if record["status"] != "ok":
            raise _ERRORS.get(record.get("cause"), TransectError)(*_words(where, record, ended.stdout))
        state = read_state(training.checkpoint, self.manifest)
        model = self.task.model
        reached = flat_of(model, {weight.name: state[f"model.{weight.name}"] for weight in model.weight_shapes()})
        return Turned(weights=reached[np.newaxis], losses=np.array([np.mean(record["losses"])]))

    def _training(self, turn: Turn, folder: Path) -> Training:
        """Write what a turn needs into its folder: rows, their order, and the state."""
        steps, batch = turn.rows.shape
        rows, order = np.unique(turn.rows, return_inverse=True)
        arrays = {True: self.task.y, False: self.task.x}
        data = {each.name: np.asarray(arrays[each.target][rows], each.dtype) for each in self.manifest.data}
        write_tensors(folder / "data", data)
        (folder / "order.bin").write_bytes(order.astype("<i8").tobytes())
        given = {f"model.{name}": array for name, array in arrays_of(self.task.model, turn.given).items()}
        rest = read_state(self.step / self.manifest.state_file, self.manifest)
        # The rate stays: a client begins anew in each turn.
        schedule = {"lr": self.task.parameters.learning_rate}
        has_pull = any(parameter.name == "mu" for parameter in self.manifest.hyper)
        if turn.correction is not None or (turn.mu and not has_pull):
            raise BadInput(
                f"{self.step}: a turn has mu {turn.mu:g}{'' if turn.correction is None else ' and a correction'}, and the "
                f"step {'mu' if has_pull else 'neither'}: expected of a method no more than its `pulls` and `corrects` say"
            )
        if has_pull:
            schedule["mu"] = turn.mu
            anchors = {f"anchor.{name}": array for name, array in arrays_of(self.task.model, turn.pulled_to).items()}
            given |= {name: array for name, array in anchors.items() if name in rest}
        write_atomic(folder / "schedule.json", json.dumps(schedule) + "\n")
        write_state(folder / "state.safetensors", rest | given, self.manifest)
        return Training(
            step=self.step,
            data=folder / "data",
            order=folder / "order.bin",
            checkpoint=folder / "checkpoint.safetensors",
            out=folder / "out",
            batch=batch,
            until=steps,
            options=session_options(EQUAL, 1, "cpu", {}),
            state=folder / "state.safetensors",
            schedule=folder / "schedule.json",
        )


def _check_model(step: Path, manifest: Manifest, model: Model) -> None:
    """Raise BadInput where a weight of either has no counterpart: it would be left as it was exported."""
    weights = {f"model.{weight.name}" for weight in model.weight_shapes()}
    trained = {tensor.name for tensor in manifest.state if tensor.role in ("parameter", "frozen")}
    if alone := sorted((weights - {tensor.name for tensor in manifest.state}) | (trained - weights)):
        raise BadInput(f"{step}: expected a step of the workload's model, '{alone[0]}' is in one of the two alone")


def _words(where: str, record: Mapping[str, Any], said: str) -> list[str]:
    """Return the lines of an error: what became of a program, and the last of what it said."""
    lines = [line[:_CHARACTERS] for line in said.splitlines() if line.strip()]
    return [f"{where}: {record['message']}", *lines[-_LINES:]]
