"""One turn of a retraining: a runner's program from a step to a later one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.domain.axes.retrain import RetrainCell
from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.domain.record import Cause
from transect.portable_step.manifest import Manifest, read_manifest
from transect.portable_step.state import read_state, read_tensors
from transect.runtimes.options import thread_variables
from transect.runtimes.programs import start_command
from transect.runtimes.training import keep_checkpoint, train_record
from transect.runtimes.training_plans import Training

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A runtime's steps from `begin` to `end` of a problem, and where its record goes."""

    runtime: str
    begin: int
    end: int
    record: Path
    problem: Path

    @property
    def work(self) -> Path:
        """Where its program works, until the turn is done."""
        return self.record.with_suffix("")


def updates_done(checkpoint: Path) -> int | None:
    """Return the number of updates that a checkpoint holds, or None when there is none to go on with."""
    if not checkpoint.is_file():
        return None
    tensors, _ = read_tensors(checkpoint)
    return int(tensors["step"])


def earlier_record(turn: Turn, checkpoint: Path, manifest: Manifest) -> dict[str, Any] | None:
    """Return the record of a turn that an earlier attempt has done, or None.

    A checkpoint that cannot be read, or is another step's, is no checkpoint: it is removed.
    """
    try:
        done = int(read_state(checkpoint, manifest)["step"]) if checkpoint.is_file() else 0
    except BadInput:
        checkpoint.unlink()
        done = 0
    if done < turn.end:
        return None
    try:
        record = json.loads(turn.record.read_text(encoding="utf-8"))
        return record if record["status"] == "ok" and record["state_step"] == turn.end else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_turn(
    turn: Turn, cell: RetrainCell, spec: Mapping[str, Any], step: Path, out: Path, program: Mapping[str, Any]
) -> dict[str, Any]:
    """Start the runner, and again where it was killed after a further checkpoint; return its record.

    The record gets `state_step`, and `killed`: how often it was. Raises FileNotFoundError when the
    program is not there.
    """
    environment = os.environ | thread_variables(cell.threads) | program["variables"]
    checkpoint, work, killed = out / CHECKPOINT, turn.work, 0
    training = _training(turn, cell, spec, step, out, work)
    # What an earlier attempt was killed in may have got further than the checkpoint.
    keep_checkpoint(work, read_manifest(training.step), checkpoint)
    while True:
        before = updates_done(checkpoint)
        command = [*program["wrap"], *start_command(turn.runtime, program["python"], training.plan())]
        ended = subprocess.run(command, env=environment, check=False)
        record = train_record(turn.runtime, work, ended.returncode, training.step, checkpoint)
        further = updates_done(checkpoint)
        if record.get("cause") != Cause.KILLED.value or further is None or further == before:
            break
        killed += 1
    record |= {"state_step": further, "killed": killed}
    write_atomic(turn.record, json.dumps(record) + "\n")
    return record


def _training(turn: Turn, cell: RetrainCell, spec: Mapping[str, Any], step: Path, out: Path, work: Path) -> Training:
    return Training(
        step=step / "step",
        data=step / "data",
        order=turn.problem / "order.bin",
        checkpoint=out / CHECKPOINT,
        out=work,
        batch=cell.batch,
        until=turn.end,
        provider=cell.provider,
        options=spec["options"],
        state=step / "states" / f"state-{cell.repeat}.safetensors",
        checkpoint_every=spec["checkpoint_every"],
        schedule=turn.problem / "schedule.json",
        accumulate=cell.accumulate,
        seed=cell.repeat,
    )
