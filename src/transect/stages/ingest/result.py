"""Runs that parsers read, as one result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from transect.domain.record import Cause, LogPoint, MetricValue
from transect.engine.job import Result
from transect.hpc.base import LogMetric, Run


def _point(run: int, at: int, metric: LogMetric) -> LogPoint:
    return LogPoint(
        run=run, metric=at, series=metric.name, phase=metric.phase, size=metric.size, precision=metric.precision
    )


def result_of(runs: Sequence[Run], *, must_have: bool) -> Result:
    """Turn runs into a result: a number counts only when its run is `ok`."""
    metrics = []
    valid = [run for run in runs if run.status == "ok"]
    for number, run in enumerate(runs):
        if run.status != "ok":
            continue
        # Within one record a label names one number: a run's place tells several runs apart.
        place = f"{Path(run.file).name}:{run.line}" if len(valid) > 1 else None
        # As one line of JSON may hold several, whose numbers are called the same.
        several = any(other is not run and (other.file, other.line) == (run.file, run.line) for other in valid)
        for at, metric in enumerate(run.metrics):
            if metric.normalised is not None:
                words = (place, metric.phase if several else None, metric.name, metric.size)
                metrics.append(
                    MetricValue.of(
                        metric.normalised.name,
                        metric.normalised.value,
                        " ".join(str(word) for word in words if word is not None),
                        _point(number, at, metric),
                    )
                )
    details = {
        "runs": [run.model_dump(mode="json", exclude_none=True) for run in runs],
        "status_counts": dict(Counter(run.status for run in runs)),
    }
    if must_have and not metrics:
        reasons = "; ".join(f"{run.benchmark}: {run.status} {run.reason}" for run in runs)
        result = Result.failed(Cause.WRONG_RESULT, f"no valid number in its log: {reasons}")
        result.details = details
        return result
    return Result(metrics=metrics, details=details)
