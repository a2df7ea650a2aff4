"""Runs that parsers read, as one result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from transect.domain.record import Cause, MetricValue
from transect.execution.job import Result
from transect.hpc.base import LogMetric, Run

__all__ = ["result_of"]


def _size(metric: LogMetric) -> str | None:
    """Return the size of a point of a series, unless the metric's name tells it already."""
    if metric.size is None or str(metric.size) in metric.name:
        return None
    return str(metric.size)


def result_of(runs: Sequence[Run], *, must_have: bool) -> Result:
    """Turn runs into a result: a number counts only when its run is `ok`."""
    metrics = []
    valid = [run for run in runs if run.status == "ok"]
    for run in valid:
        # Within one record a label names one number: a run's place tells several runs apart.
        place = f"{Path(run.file).name}:{run.line}" if len(valid) > 1 else None
        for metric in run.metrics:
            if metric.normalised is not None:
                label = " ".join(
                    str(part) for part in (place, metric.name, _size(metric)) if part is not None
                )
                metrics.append(
                    MetricValue.of(metric.normalised.name, metric.normalised.value, label)
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
