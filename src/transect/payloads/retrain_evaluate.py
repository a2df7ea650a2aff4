"""The final state on the test rows: `eval.onnx`, whoever trained, in one program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.onnx_models.tensors import read_tensors, write_tensors
from transect.payloads.retrain_turn import CHECKPOINT
from transect.portable_step.manifest import Manifest
from transect.portable_step.state import read_state
from transect.runtimes import EVALUATION, RUNTIMES
from transect.runtimes._records import read_runner_record
from transect.runtimes.options import EQUAL, session_options, thread_variables

_WORK = "evaluation"


def evaluate(step: Path, manifest: Manifest, out: Path, programs: dict[str, Any]) -> dict[str, float]:
    """Return loss and metrics of the final state, means over all test rows.

    Raises BadInput when the program that runs `eval.onnx` has none.
    """
    work = out / _WORK
    shutil.rmtree(work, ignore_errors=True)
    graph = manifest.graphs["eval"]
    known = read_tensors(step / "test") | read_state(out / CHECKPOINT, manifest)
    write_tensors(work / "inputs", {name: known[name] for name in graph.inputs})
    write_atomic(work / "options.json", json.dumps(session_options(EQUAL, 1, "cpu", {})))
    program = programs[EVALUATION]
    options: dict[str, Any] = {
        "model": step / "step" / graph.file,
        "inputs": work / "inputs",
        "provider": "cpu",
        "outputs": work / "outputs",
        "options": work / "options.json",
        "record": work / "record.json",
        "warmup": 0,
        "min-runs": 1,
        "max-seconds": 0.001,
    }
    arguments = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    command = RUNTIMES.get(EVALUATION).command(program["python"], arguments)
    ended = subprocess.run(
        [*program["wrap"], *command], check=False, env=os.environ | thread_variables(1) | program["variables"]
    )
    record = read_runner_record(work / "record.json", ended.returncode)
    if record["status"] != "ok":
        raise BadInput(f"eval.onnx on the final state: {record.get('message', record)}")
    found = read_tensors(work / "outputs")
    shutil.rmtree(work)
    return {one.name: float(found[one.name]) for one in manifest.metrics}  # type: ignore[arg-type]
