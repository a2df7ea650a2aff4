"""One retraining.

Runs in the driver's environment and starts the runner of each turn in mode `train`
(docs/runner-contract.md), all on one checkpoint: what one leaves, the next goes on with. `programs` has
for each runtime, and the one that evaluates, `python`, `wrap` and `variables` of its environment.
Leaves `checkpoint.safetensors`, `turn-N.json` (the runners' own records), `samples.npz` and
`result.json`.

What an earlier attempt left in the cell's folder is gone on with: who calls has made sure that it was the same work.
A runner that is killed is started again from its checkpoint, as long as it got further than before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.axes.retrain import RetrainCell
from transect.domain.record import Cause, Status
from transect.onnx_models.results import result
from transect.payloads.retrain_evaluate import evaluate
from transect.payloads.retrain_result import Part, conclude, refused
from transect.payloads.retrain_turn import CHECKPOINT, Turn, earlier_record, run_turn
from transect.portable_step.manifest import read_manifest


def retrain(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Run one cell; return its result."""
    cell = RetrainCell.of(**spec["cell"])
    try:
        return retrain_cell(cell, spec, folders["step"], out, spec["run"]["programs"])
    except FileNotFoundError as error:
        told = f"{error.filename}: no such program or file"
        return result(status=Status.FAILED, cause=Cause.MISSING_DEPENDENCY, message=told)


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
        parts.append(Part(turn=turn, record=record))
        if record.get("status") != "ok":
            return refused(parts, cell, step, spec, out)
        begin = end
    return conclude(parts, cell, step, spec, out, lambda: evaluate(step, manifest, out, programs))
