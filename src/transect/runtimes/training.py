"""A training under a runner: the program is started, and what it left becomes a checkpoint and a record."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import BadInput
from transect.portable_step.manifest import Manifest, read_manifest
from transect.portable_step.state import write_state
from transect.runtimes.plan_file import Plan, Role, read_plan
from transect.runtimes.programs import PLAN, numbers, run_record, said_lines
from transect.runtimes.training_plans import COUNTER, not_finite, read_block

_WHY_NOT_FINITE = "the rate is too high, or the target has a class that the model does not"
_SERIES = ("losses", "gather_ns", "bind_ns", "run_ns", "read_ns")


def keep_checkpoint(out: Path, manifest: Manifest, checkpoint: Path) -> tuple[int, str] | None:
    """Make a state file of the last checkpoint that a program left whole and finite, if any, at once or not at all.

    Returns the step after which a later one was not finite, and which tensor, or None. A program that was killed leaves two blocks, of which the one that
    it was writing was never announced. Raises OSError, with what was there before still in place.
    """
    try:
        plan, lines = read_plan(out / PLAN), said_lines(out)
    except (OSError, BadInput, ValueError):
        return None
    # Two files by turns: of each, what was announced last.
    last = {line["slot"]: line["checkpoint"] for line in lines if "checkpoint" in line}
    wrong: tuple[int, str] | None = None
    for slot, updates in sorted(last.items(), key=lambda item: -item[1]):
        try:
            state = read_block(out / f"state-{slot}.bin", manifest, plan)
        except BadInput:
            continue
        if state[COUNTER] != updates:
            # Announced by an earlier run, or being written again when it was killed.
            continue
        if name := not_finite(state):
            wrong = (updates - 1, name)
            continue
        write_state(checkpoint, state, manifest)
        break
    return wrong


def train_record(runtime: str, out: Path, code: int, step: Path, checkpoint: Path) -> dict[str, Any]:
    """Return the record of a training that ended with `code`, its last good state in `checkpoint`.

    A number that is not finite makes it failed, with cause `diverged` and what came before.
    """
    manifest, plan = read_manifest(step), read_plan(out / PLAN)
    try:
        wrong = keep_checkpoint(out, manifest, checkpoint)
    except OSError as error:
        # Of a full disk the system does not say which file was written.
        return {"status": "failed", "cause": "crash", "message": f"{checkpoint}: cannot be written: {error.strerror}"}
    record = run_record(runtime, out, code)
    if record["status"] != "ok":
        return record
    record |= _series(out, manifest, plan, record)
    record |= {"state": str(checkpoint), "step_graph": manifest.step_graph, "first_step": plan.first_step}
    lines = said_lines(out)
    record["checkpoints"] = [{"step": line["checkpoint"], "ns": line["ns"]} for line in lines if "checkpoint" in line]
    losses, first = record["losses"], plan.first_step
    bad = next((index for index, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if wrong is not None:
        _cut(record, wrong[0] - first)
        message = f"by step {wrong[0]} '{wrong[1]}' holds a number that is not finite"
    elif bad is not None:
        _cut(record, bad)
        message = f"the loss of step {first + bad} is {losses[bad]}: {_WHY_NOT_FINITE}"
    elif len(losses) != plan.steps:
        raise BadInput(f"runner '{runtime}' reported {len(losses)} losses, expected {plan.steps}")
    else:
        return record
    return record | {"status": "failed", "cause": "diverged", "message": f"diverged: {message}"}


def _cut(record: dict[str, Any], steps: int) -> None:
    """Leave in the record what came before a step that did not go well."""
    for name in _SERIES:
        record[name] = record[name][:steps]
    record["metrics"] = {name: values[:steps] for name, values in record["metrics"].items()}
    record["checkpoints"] = [entry for entry in record["checkpoints"] if entry["step"] <= record["first_step"] + steps]


def _series(out: Path, manifest: Manifest, plan: Plan, record: dict[str, Any]) -> dict[str, Any]:
    names = [entry.name for entry in plan.of(Role.METRIC)]
    values = numbers(out / "metrics.bin", "<f8", len(names))
    if len(values) != len(record["run_ns"]):
        raise BadInput(f"{out}: metrics of {len(values)} steps and times of {len(record['run_ns'])}")
    # JSON has no number that is none: of the metrics only the loss is known to be finite.
    rest = {
        name: [value if math.isfinite(value) else None for value in values[:, column].tolist()]
        for column, name in enumerate(names)
        if column
    }
    return {"losses": np.asarray(values[:, 0]).tolist(), "metrics": rest}
