"""Training runs as logs of other communities tell them: epochs, their ends and scores, and the target."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.domain.metrics import METRICS, Direction
from transect.domain.record import Status
from transect.report.engine.report import Made
from transect.report.engine.text import clipped

# Stages that train as well, and what of a run their records do not tell.
_NO_RUNS = {
    "retrain": "it goes on from a trained base for a number of steps, without the epochs and scores of a run",
    "classify": "its record tells no ends of epochs, which a run has",
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training that ended well, with every epoch's end and score.

    Times are seconds: `epoch_ends` since the first step began, checkpoints and tests of the model left out; `steps` of each step, the
    slowest rank's; `touched` is when data was first touched and `began` when the first step began, since 1970.
    `train_samples` and `eval_samples` are those of the data, None where no record says so.
    """

    record: AnyRecord
    series: str
    score: str
    target: float | None
    lower_is_better: bool
    scores: list[float]
    epoch_ends: list[float]
    steps: list[float]
    started: float
    touched: float
    began: float
    global_batch: int
    train_samples: int | None
    eval_samples: int | None
    seed: int | None

    @property
    def reached(self) -> int | None:
        """The first epoch, from 1, whose score reaches the target; None when none does, or there is none."""
        place = _first(self.scores, self.target, self.lower_is_better)
        return None if place is None else place + 1

    def of_epoch(self, values: list[float], epoch: int) -> list[float]:
        """Return the part of a series of steps that belongs to an epoch, counted from 1."""
        size = len(values) // len(self.epoch_ends)
        return values[size * (epoch - 1) : size * epoch]


def as_name(text: str) -> str:
    """Return text as the name of a file or folder: a cell's id stays what it is."""
    return re.sub(r"[^\w.~+=,-]", "-", text).lstrip(".") or "unnamed"


def read_runs(made: Made, left_out: list[str]) -> Iterator[Run]:
    """Yield every training whose records tell its epochs; add to `left_out` which do not, and why."""
    for record in (r for r in made.context.records if r.stage == "train"):
        run = _read(made, record)
        if isinstance(run, Run):
            yield run
        else:
            left_out.append(f"train/{record.cell_id}: {run}")
    left_out.extend(
        f"{r.stage}/{r.cell_id}: {_NO_RUNS[r.stage]}"
        for r in made.context.records
        if r.stage in _NO_RUNS and r.status is Status.OK
    )


def _read(made: Made, record: AnyRecord) -> Run | str:
    if record.status is not Status.OK:
        cause = record.cause.value if record.cause else ""
        return clipped(f"{record.status.value}, {cause}: {record.message}", 200)
    quality = record.details.get("quality")
    if not isinstance(quality, dict):
        return "no quality was measured: its input is synthetic, or its record does not say"
    score = str(quality.get("metric"))
    series = {name: made.context.originals.samples(record, name) for name in (score, "epoch_end", "step_time")}
    missing = [name for name, values in series.items() if not values]
    if missing:
        return f"no series of {' and '.join(missing)}"
    scores, ends, steps = series.values()
    if len(scores) != len(ends) or len(steps) % len(ends) or not all(map(math.isfinite, (*scores, *ends, *steps))):
        return f"{len(ends)} epochs have {len(scores)} scores and {len(steps)} steps, or one of them is no number"
    batch, target = record.details.get("global_batch"), quality.get("target")
    if not isinstance(batch, int):
        return "its record has no global batch"
    target = float(target) if isinstance(target, (int, float)) and math.isfinite(target) else None
    data = _data_of(made, record)
    lower = score in METRICS and METRICS[score].direction is Direction.LOWER
    reached = _first(scores, target, lower)
    # Time to quality begins when data is touched, epochs when the first step does.
    known, startup = record.value("time_to_quality"), record.value("startup_time") or 0.0
    loading = max(0.0, known - ends[reached]) if known is not None and reached is not None else 0.0
    try:
        started = datetime.fromisoformat(record.started).timestamp()
    except ValueError:
        return f"it began at '{clipped(record.started, 40)}', which is no time"
    began = started + max(startup, loading)
    return Run(
        record=record,
        series=record.cell.model_copy(update={"repeat": 0}).id,
        score=score,
        target=target,
        lower_is_better=lower,
        scores=scores,
        epoch_ends=ends,
        steps=steps,
        started=started,
        touched=began - loading,
        began=began,
        global_batch=batch,
        train_samples=_whole(data.get("train")),
        eval_samples=_whole(data.get("test")),
        seed=_seed(data, record.cell.repeat),
    )


def _first(scores: list[float], target: float | None, lower: bool) -> int | None:
    if target is None:
        return None
    return next((at for at, score in enumerate(scores) if (score <= target if lower else score >= target)), None)


def _data_of(made: Made, record: AnyRecord) -> dict[str, Any]:
    """Return what the data of a training's workload is, where there is but one."""
    found = [r.details for group in made.context.of("dataset", record.cell.workload) for r in group.ok]
    return found[0] if len(found) == 1 else {}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _seed(data: dict[str, Any], repeat: int) -> int | None:
    seeds = data.get("seeds_of_repeats")
    return _whole(seeds[repeat]) if isinstance(seeds, list) and repeat < len(seeds) else None
