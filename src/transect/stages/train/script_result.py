"""What a study's own script told of its epochs, as the result of a training. It has no reference: nothing checks it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.metrics import Direction, metric
from transect.domain.record import Cause, MetricValue, Samples, Status
from transect.engine.job import Job, Result, cell_of
from transect.engine.stage_helpers import cores, over_subscribed
from transect.stages.train.result_usage import energy_values, usage_values
from transect.training.layout import Layout
from transect.training.script_workload import ScriptWorkload, script_workload

EPOCHS = "epochs.jsonl"
_KEYS = ("epoch", "metric", "loss", "seconds", "samples")
# A script may tell whole seconds.
_ROUNDED_S = 1.0
# Lines that come within this time were not told as epochs ended.
_AT_ONCE_S = 1e-3
# Why a record of one has no equality; the report says it.
NO_REFERENCE = "a script of the study's own, which has no reference"


class _Wrong(ValueError):
    """What the script told cannot be used."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """What each line told: arrays (lines,). What no line tells is None. `at`: seconds since the script began."""

    epoch: np.ndarray
    metric: np.ndarray
    at: np.ndarray
    # Seconds up to each line that count: what the script tells of its training, or all since it began.
    ends: np.ndarray
    loss: np.ndarray | None = None
    samples: np.ndarray | None = None

    @property
    def took(self) -> np.ndarray:
        """Return the seconds of an epoch, for each line; the first line counts for one epoch."""
        return np.diff(self.ends, prepend=0.0) / np.diff(self.epoch, prepend=self.epoch[0] - 1)


def read_epochs(path: Path, started: float, clock: str) -> Epochs:
    """Read what a script told since `started`, in seconds since 1970; `clock` is its workload's.

    Raises ValueError naming the line.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if not lines:
        raise _Wrong(
            "the script told of no epoch: expected calls of transect.log_epoch on rank 0, or lines of its output that "
            "match `epoch_line`"
        )
    told = [_read(line, f"{path.name}, line {number}") for number, line in enumerate(lines, 1)]
    for number, one in enumerate(told[1:], 2):
        where = f"{path.name}, line {number}"
        if one.keys() != told[0].keys():
            names = ", ".join(sorted(one.keys() ^ told[0].keys()))
            raise _Wrong(f"{where}: {names} stands in this line or in line 1 alone: expected the same of each epoch")
        for key, why in (
            ("epoch", "expected one line of each epoch"),
            ("seconds", "expected those of all epochs so far"),
        ):
            if key in one and one[key] <= told[number - 2][key]:
                raise _Wrong(f"{where}: {key} {one[key]:g} follows {told[number - 2][key]:g}: {why}, so that they grow")
    if clock == "told" and "seconds" not in told[0]:
        raise _Wrong(
            f"{path.name}, line 1: no seconds: the workload's `clock` is `told`, so expected those of training so far"
        )
    arrays = {key: np.array([one[key] for one in told]) for key in told[0]}
    arrays["at"] = arrays["at"] - started
    ends = arrays.pop("seconds", arrays["at"])
    if (late := np.flatnonzero(ends > arrays["at"] + _ROUNDED_S)).size:
        number = int(late[0])
        began = f"and the script began {arrays['at'][number]:g} s before"
        raise _Wrong(f"{path.name}, line {number + 1}: seconds {ends[number]:g}, {began}")
    if clock == "start":
        ends = arrays["at"]
        if (soon := np.flatnonzero(np.diff(ends) < _AT_ONCE_S)).size:
            number = int(soon[0]) + 2
            raise _Wrong(
                f"{path.name}, line {number}: told together with line {number - 1}: expected each as its epoch ends, or the "
                "workload's `clock: told`, where a script tells seconds of its own"
            )
    if ends[-1] <= 0:
        raise _Wrong(f"{path.name}, line {len(lines)}: seconds is 0: expected those of training so far")
    return Epochs(**arrays, ends=ends)


def _read(line: str, where: str) -> dict[str, float]:
    try:
        told = json.loads(line)
    except ValueError:
        raise _Wrong(f"{where}: {line[:100]!r}: expected a JSON object, as transect.log_epoch writes it") from None
    if not isinstance(told, dict):
        raise _Wrong(f"{where}: {line[:100]!r}: expected a JSON object, as transect.log_epoch writes it")
    if missing := [key for key in ("epoch", "metric", "at") if key not in told]:
        raise _Wrong(f"{where}: lacks {', '.join(missing)}")
    numbers = {}
    for key in (*_KEYS, "at"):
        if key in told:
            try:
                numbers[key] = float(told[key])
            except (TypeError, ValueError):
                raise _Wrong(f"{where}: {key} is {told[key]!r}: expected a number") from None
    for key in ("epoch", "seconds", "samples"):
        if key in numbers and not (math.isfinite(numbers[key]) and numbers[key] >= 0):
            raise _Wrong(f"{where}: {key} is {numbers[key]:g}: expected a number of 0 or more")
    if numbers.get("samples") == 0:
        raise _Wrong(f"{where}: samples is 0: expected those of the epoch, of all ranks together")
    return numbers


def script_result(job: Job, ranks: list[dict[str, Any]]) -> Result:
    """Return the result of what the script told and the ranks used, in rank order."""
    cell = cell_of(job, TrainCell)
    workload = script_workload(cell)
    try:
        epochs = read_epochs(job.folder / EPOCHS, ranks[0]["started"], workload.clock)
    except _Wrong as error:
        return Result.failed(Cause.BAD_INPUT, str(error))
    target, reached = workload.defaults.quality_target, _reached(epochs, workload)
    values = _values(epochs, cell.batch) | usage_values(ranks)
    values["peak_memory"] = max(rank["peak_memory_bytes"] for rank in ranks)
    if reached is not None:
        values["time_to_quality"] = float(epochs.ends[reached])
    installed = job.environment.get("installed", {})
    for unit in ("bytes", "files") if installed else ():
        values[f"environment_{unit}"] = sum(part[unit] for part in installed.values())
    label = None if workload.label == workload.score else workload.label
    score = MetricValue.of(workload.score, float(np.nan_to_num(epochs.metric[-1])), label)
    result = Result(
        metrics=[*(MetricValue.of(name, value) for name, value in values.items()), score, *energy_values(ranks)],
        samples=_samples(epochs, workload.label),
        details={
            "global_batch": cell.batch,
            "cores": cores(job),
            "over_subscribed": over_subscribed(job),
            "layout": asdict(Layout(cell.ranks)),
            "installed": installed,
            "quality": {
                "metric": workload.label,
                "target": target,
                "reached": reached is not None,
                **({"since": "the script began"} if workload.clock == "start" else {}),
            },
            "epochs": [float(number) for number in epochs.epoch],
            "clock": workload.clock,
            "not_checkable": NO_REFERENCE,
            "rank_peak_memory_bytes": [rank["peak_memory_bytes"] for rank in ranks],
            "rank_usage": [rank["usage"] for rank in ranks],
        },
        libraries=ranks[0]["libraries"],
    )
    for name, series in (("loss", epochs.loss), (workload.label, epochs.metric)):
        if series is not None and not np.isfinite(series).all():
            first = int(np.argmin(np.isfinite(series)))
            result.status, result.cause = Status.FAILED, Cause.DIVERGED
            result.message = f"the {name} is {series[first]} in epoch {epochs.epoch[first]:g}"
    return result


def _reached(epochs: Epochs, workload: ScriptWorkload) -> int | None:
    """Return the number of the first line with the target, or None."""
    target = workload.defaults.quality_target
    lower_wins = metric(workload.score).direction is Direction.LOWER
    found = np.flatnonzero(epochs.metric <= target if lower_wins else epochs.metric >= target)
    return int(found[0]) if found.size else None


def _values(epochs: Epochs, batch: int) -> dict[str, float]:
    # The first epoch loads and compiles, and may hold the script's start.
    steady = slice(min(1, len(epochs.epoch) - 1), None)
    took = epochs.took[steady]
    values = {"train_time": float(epochs.ends[-1]), "epoch_time": float(np.median(took))}
    if epochs.loss is not None and math.isfinite(epochs.loss[-1]):
        values["final_loss"] = float(epochs.loss[-1])
    if epochs.samples is not None:
        rate = float(np.median(epochs.samples[steady] / took))
        values |= {"samples_per_second": rate, "step_time": batch / rate}
    return values


def _samples(epochs: Epochs, label: str) -> dict[str, Samples]:
    series = {"epoch_end": (epochs.ends, "s"), "epoch_time": (epochs.took, "s"), label: (epochs.metric, "1")}
    if epochs.loss is not None:
        series["loss"] = (epochs.loss, "1")
    finite = {name: (array, unit) for name, (array, unit) in series.items() if np.isfinite(array).all()}
    return {
        name: Samples(unit=unit, values=[float(value) for value in array], count=array.size)
        for name, (array, unit) in finite.items()
    }
