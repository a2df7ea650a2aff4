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
from transect.portable_step.manifest import Manifest
from transect.portable_step.state import read_state, read_tensors
from transect.runtimes import RUNTIMES
from transect.runtimes._records import read_runner_record
from transect.runtimes.options import thread_variables

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A runtime's steps from `begin` to `end` of a problem, and where its record goes."""

    runtime: str
    begin: int
    end: int
    record: Path
    problem: Path


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
    write_atomic(out / "options.json", json.dumps(spec["options"], indent=1) + "\n")
    command = [*program["wrap"], *_command(turn, cell, spec, step, out, program["python"])]
    environment = os.environ | thread_variables(cell.threads) | program["variables"]
    checkpoint, killed = out / CHECKPOINT, 0
    while True:
        before = updates_done(checkpoint)
        turn.record.unlink(missing_ok=True)
        ended = subprocess.run(command, env=environment, check=False)
        record = read_runner_record(turn.record, ended.returncode)
        further = updates_done(checkpoint)
        if record.get("cause") != Cause.KILLED.value or further is None or further == before:
            break
        killed += 1
    record |= {"state_step": further, "killed": killed}
    write_atomic(turn.record, json.dumps(record) + "\n")
    return record


def _command(turn: Turn, cell: RetrainCell, spec: Mapping[str, Any], step: Path, out: Path, python: str) -> list[str]:
    options: dict[str, Any] = {
        "mode": "train",
        "step": step / "step",
        "inputs": step / "data",
        "batch": cell.batch,
        "order": turn.problem / "order.bin",
        "until": turn.end,
        "state": step / "states" / f"state-{cell.repeat}.safetensors",
        "checkpoint": out / CHECKPOINT,
        "checkpoint-every": spec["checkpoint_every"],
        "schedule": turn.problem / "schedule.json",
        "accumulate": cell.accumulate,
        "seed": cell.repeat,
        "provider": cell.provider,
        "options": out / "options.json",
        "record": turn.record,
    }
    arguments = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    return RUNTIMES.get(turn.runtime).command(python, arguments)
