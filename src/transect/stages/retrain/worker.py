"""One retraining: `python -m transect.stages.retrain.worker --spec … --step … --out … --programs …`.

Runs in the driver's environment and starts the runner of each turn in mode `train`
(docs/runner-contract.md), all on one checkpoint: what one leaves, the next goes on with. `--programs` is
JSON: for each runtime, and the one that evaluates, `python`, `wrap` and `variables` of its environment.
Leaves `checkpoint.safetensors`, `turn-N.json` (the runners' own records), `samples.npz` and
`result.json`. Exit code 0 when the verdict stands there.

What an earlier attempt left in `--out` is gone on with: who calls has made sure that it was the same work.
A runner that is killed is started again from its checkpoint, as long as it got further than before.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from transect.domain.axes.retrain import RetrainCell
from transect.domain.cell import Cell
from transect.domain.errors import FAULTS
from transect.domain.record import Cause, Status
from transect.onnx_models.results import result, write_fault, write_result
from transect.portable_step.manifest import read_manifest
from transect.stages.retrain.worker_evaluate import evaluate
from transect.stages.retrain.worker_result import Part, conclude, refused
from transect.stages.retrain.worker_turn import CHECKPOINT, Turn, earlier_record, run_turn


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


def main(arguments: list[str] | None = None) -> int:
    """Run one retrain cell."""
    parser = argparse.ArgumentParser(description="one retraining")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--step", type=Path, required=True, help="folder of a step cell")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--programs", type=json.loads, required=True, help="JSON by runtime")
    given = parser.parse_args(arguments)
    try:
        spec = json.loads(given.spec.read_text())
        cell = Cell.of(**spec["cell"])
        assert isinstance(cell, RetrainCell)
        write_result(given.out, retrain_cell(cell, spec, given.step, given.out, given.programs))
    except FileNotFoundError as error:
        told = f"{error.filename}: no such program or file"
        write_result(given.out, result(status=Status.FAILED, cause=Cause.MISSING_DEPENDENCY, message=told))
        return 1
    except FAULTS as error:
        return write_fault(given.out, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
