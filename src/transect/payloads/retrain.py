"""One retraining.

Runs in the driver's environment and starts the runner of each turn at level `train`
(docs/runner-contract.md), all on one checkpoint: what one leaves, the next goes on with. `programs` has
for each runtime, and the one that evaluates, `python`, `wrap` and `variables` of its environment.
Leaves `checkpoint.safetensors`, `turn-N.json` (the runners' own records), `samples.npz` and
`result.json`.

What an earlier attempt left in the cell's folder is gone on with: who calls has made sure that it was the same work.
A runner that is killed is started again from its checkpoint, as long as it got further than before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from transect.domain.axes.retrain import RetrainCell
from transect.domain.errors import BadInput
from transect.domain.record import Cause, Status
from transect.onnx_models.results import result
from transect.onnx_models.tensors import read_tensors, write_tensors
from transect.payloads.retrain_result import Part, conclude, refused
from transect.payloads.retrain_turn import CHECKPOINT, Turn, earlier_record, run_turn
from transect.portable_step.manifest import Manifest, read_manifest
from transect.portable_step.state import read_state
from transect.runtimes import EVALUATION
from transect.runtimes.options import EQUAL, session_options, thread_variables
from transect.runtimes.programs import run_record, start_command
from transect.runtimes.serving_plans import Serving


def retrain(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Run one cell; return its result."""
    cell = RetrainCell.of(**spec["cell"])
    try:
        return retrain_cell(cell, spec, folders["step"], out, spec["run"]["programs"])
    except FileNotFoundError as error:
        message = f"{error.filename}: no such program or file"
        return result(status=Status.FAILED, cause=Cause.MISSING_DEPENDENCY, message=message)


def retrain_cell(
    cell: RetrainCell, spec: dict[str, Any], step: Path, out: Path, programs: dict[str, Any]
) -> dict[str, Any]:
    """Run one cell into `out`; return its result. Raises BadInput for what cannot be used."""
    manifest = read_manifest(step / "step")
    parts: list[Part] = []
    begin = 0
    for number, (runtime, end) in enumerate(cell.ends()):
        turn = Turn(
            runtime=runtime,
            begin=begin,
            end=end,
            record=out / f"turn-{number}.json",
            problem=step / "problems" / spec["problem"]["name"],
        )
        record = earlier_record(turn, out / CHECKPOINT, manifest)
        if record is None:
            record = run_turn(turn, cell, spec, step, out, programs[runtime])
        # Also what a kill left right behind the turn's record.
        shutil.rmtree(turn.work, ignore_errors=True)
        parts.append(Part(turn=turn, record=record))
        if record.get("status") != "ok":
            return refused(parts, cell, step, spec, out)
        begin = end
    return conclude(parts, cell, step, spec, out, lambda: evaluate(step, manifest, out, programs))


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
    serving = Serving(
        model=step / "step" / graph.file,
        inputs=work / "inputs",
        outputs=work / "outputs",
        out=work,
        options=session_options(EQUAL, 1, "cpu", {}),
        warmup=0,
        min_runs=1,
        max_seconds=0.001,
    )
    program = programs[EVALUATION]
    command = start_command(EVALUATION, program["python"], serving.plan())
    ended = subprocess.run(
        [*program["wrap"], *command], check=False, env=os.environ | thread_variables(1) | program["variables"]
    )
    record = run_record(EVALUATION, work, ended.returncode)
    if record["status"] != "ok":
        raise BadInput(f"eval.onnx on the final state: {record.get('message', record)}")
    found = read_tensors(work / "outputs")
    shutil.rmtree(work)
    return {metric.name: float(found[metric.name]) for metric in manifest.metrics}  # type: ignore[arg-type]
