"""The result of a retraining, from its runners' records, compared with PyTorch's float64 path."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.retrain import RetrainCell
from transect.domain.errors import BadInput
from transect.domain.record import Cause, Status
from transect.measure.intervals import wilson
from transect.onnx_models.results import result
from transect.onnx_models.tensors import read_tensors
from transect.payloads.retrain_turn import CHECKPOINT, Turn
from transect.payloads.retrain_verdict import Path64, judge, read_path, reported_losses
from transect.portable_step.state import read_tensors as read_state_file
from transect.runtimes._records import REPORTED, require_series

# Steps after a start that are left out of medians, and kept in the samples: caches and allocators
# settle, and virtual machines compile.
SETTLING = 5
_NANO = 1e-9
_PARTS = ("gather", "bind", "run", "read")


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A turn and the record that its runner left."""

    turn: Turn
    record: dict[str, Any]

    @property
    def first(self) -> int:
        """The first step of which the record tells: one behind the turn's where it was resumed."""
        return int(self.record.get("first_step", self.turn.end))

    def seconds(self, name: str) -> np.ndarray:
        """Return the time of one part of each step, or of the whole step."""
        names = _PARTS if name == "step" else (name,)
        series = [np.array(self.record[f"{part}_ns"], float) * _NANO for part in names]
        total: np.ndarray = np.sum(series, axis=0)
        return total

    def steady(self) -> np.ndarray:
        """Return the whole steps' times without those in which things settle."""
        times = self.seconds("step")
        return times[min(SETTLING, max(0, len(times) - 1)) :]


def refused(parts: Sequence[Part], cell: RetrainCell, step: Path, spec: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Return the result of a cell whose last runner did not end well."""
    last = parts[-1]
    if last.record.get("status") == "skipped":
        reason = str(last.record.get("reason", "the runner gave no reason"))
        return result(skipped=reason)
    cause = Cause(last.record.get("cause", Cause.CRASH.value))
    message = str(last.record.get("message", "the runner left no message"))
    path = read_path(last.turn.problem)
    if cause is not Cause.DIVERGED:
        return result(
            status=Status.FAILED,
            cause=cause,
            message=f"{last.turn.runtime}: {message}",
            details=_facts(parts, step, spec),
        )
    loss = reported_losses([(part.first, part.record.get("losses", [])) for part in parts], cell.steps)
    verdict = judge(loss, path)
    also = "diverges as well" if path.diverges else "stays finite"
    if verdict.fault:
        cause, message = Cause.WRONG_RESULT, f"{verdict.fault}; then it diverged"
    return result(
        status=Status.FAILED,
        cause=cause,
        message=f"{last.turn.runtime}: {message}; PyTorch's float64 path {also}",
        metrics=verdict.ratios,
        samples=_samples(out, _loss_series(loss, path)),
        details=_facts(parts, step, spec),
    )


def conclude(
    parts: Sequence[Part],
    cell: RetrainCell,
    step: Path,
    spec: Mapping[str, Any],
    out: Path,
    evaluate: Callable[[], dict[str, float]],
) -> dict[str, Any]:
    """Return the result of a cell whose runners ended well: no time stands where the path is wrong."""
    for part in parts:
        _check_record(part, cell)
    path = read_path(parts[-1].turn.problem)
    loss = reported_losses([(part.first, part.record["losses"]) for part in parts], cell.steps)
    state, _ = read_state_file(out / CHECKPOINT)
    verdict = judge(loss, path, state)
    values, series = dict(verdict.ratios), _loss_series(loss, path)
    details = _facts(parts, step, spec) | {"steps_not_told": int(np.isnan(loss).sum())}
    if np.isfinite(loss[-1]):
        values["final_loss"] = float(loss[-1])
    if not verdict.fault:
        values |= _quality(evaluate(), step, details) | _times(parts, cell)
        series |= {f"{name}_time": np.concatenate([part.seconds(name) for part in parts]) for name in ("step", *_PARTS)}
    versions = {part.turn.runtime: str(part.record.get("runtime_version")) for part in parts}
    return result(
        wrong=verdict.fault,
        metrics=values,
        samples=_samples(out, series),
        details=details,
        libraries={f"runtime {name}": version for name, version in versions.items()},
    )


def _check_record(part: Part, cell: RetrainCell) -> None:
    record, name = part.record, part.turn.runtime
    if record.get("provider_used") != cell.provider:
        raise BadInput(f"runner '{name}' ran on {record.get('provider_used')}, the cell asks for {cell.provider}")
    if record.get("state_step") != part.turn.end:
        raise BadInput(f"runner '{name}' wrote a state of {record.get('state_step')} updates, expected {part.turn.end}")
    require_series(name, record, ("losses", *(f"{kind}_ns" for kind in _PARTS)), part.turn.end - part.first)


def _times(parts: Sequence[Part], cell: RetrainCell) -> dict[str, float]:
    """Return the times of a runtime; several in turn have none in common."""
    checkpoints = [checkpoint["ns"] for part in parts for checkpoint in part.record.get("checkpoints", ())]
    values = {}
    if checkpoints:
        values["checkpoint_time"] = float(np.median(checkpoints)) * _NANO
    steady = parts[0].steady()
    if len(parts) > 1 or not len(steady):
        return values
    record = parts[0].record
    step_s = float(np.median(steady))
    values |= {
        "step_time": step_s,
        "samples_per_second": cell.batch * cell.accumulate / step_s,
        "first_step_time": float(parts[0].seconds("step")[0]),
    }
    if isinstance(record.get("session_ns"), int):
        values["session_time"] = record["session_ns"] * _NANO
    if isinstance(record.get("peak_memory_bytes"), int):
        values["peak_memory"] = record["peak_memory_bytes"]
    return values


def _quality(evaluated: Mapping[str, float], step: Path, details: dict[str, Any]) -> dict[str, float]:
    """Return the score on the test rows before and after; put into `details` how many they are."""
    details["evaluated"] = {n: v if np.isfinite(v) else str(v) for n, v in evaluated.items()}
    if details["score"] != "accuracy" or "accuracy" not in evaluated:
        return {}
    rows = len(read_tensors(step / "test")["y"])  # type: ignore[arg-type]
    details["test_rows"] = rows
    share = evaluated["accuracy"]
    low, high = wilson(round(share * rows), rows)
    return {
        "accuracy": share,
        "accuracy_ci_low": low,
        "accuracy_ci_high": high,
        "accuracy_before": details["base_score"],
    }


def _facts(parts: Sequence[Part], step: Path, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions, the problem and each turn, for the record."""
    known = json.loads((step / "facts.json").read_text(encoding="utf-8"))
    problem = spec["problem"]
    facts = known["problems"][problem["name"]]
    last = parts[-1].record
    turns = [
        {
            "runtime": part.turn.runtime,
            "begin": part.turn.begin,
            "end": part.turn.end,
            "first_step": part.first,
            "killed": part.record.get("killed", 0),
            "runtime_version": part.record.get("runtime_version"),
            "language_version": part.record.get("language_version"),
            "peak_memory_bytes": part.record.get("peak_memory_bytes"),
            "step_time_s": float(np.median(part.steady()))
            if part.record.get("status") == "ok" and part.record.get("run_ns")
            else None,
        }
        for part in parts
    ]
    return {
        "turns": turns,
        "problem": dict(problem),
        "score": known["score"],
        "trained_on": known["trained_on"],
        "rows": known["rows"],
        "base_score": known["base_scores"][str(problem["repeat"])],
        "reference_score": facts["score"],
        "not_checkable_from": facts["not_checkable_from"],
        "tolerance_rule": known["tolerance_rule"],
        "resumed_from": [part.first for part in parts if part.first > part.turn.begin],
        **({key: last[key] for key in REPORTED if key in last} if len(parts) == 1 else {}),
    }


def _loss_series(loss: np.ndarray, path: Path64) -> dict[str, np.ndarray]:
    return {"loss": loss, "reference_loss": path.loss, "loss_tolerance": path.tolerance}


def _samples(out: Path, series: Mapping[str, np.ndarray]) -> dict[str, Any]:
    np.savez_compressed(out / "samples.npz", **series)  # type: ignore[arg-type]
    return {
        name: {"unit": "s" if name.endswith("_time") else "1", "file": "samples.npz", "key": name, "count": len(array)}
        for name, array in series.items()
    }
