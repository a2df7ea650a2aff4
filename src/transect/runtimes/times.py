"""A runner's raw times as metrics and samples."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.record import INLINE_SAMPLES
from transect.measure.turn_series import by_turns

_NANO = 1e-9
_PARTS = ("bind_ns", "run_ns", "copy_ns")
# A tail percentile needs samples in the tail: twenty beyond it.
_P95_SAMPLES, _P99_SAMPLES = 400, 2000
# Turns are as long as they have to be, so that a fast runtime makes 10^5 calls: an even choice of them is kept.
SAMPLES_OF_TURNS = 2000


def _rank(ordered: np.ndarray, share: float) -> float:
    return float(ordered[math.ceil(share * len(ordered)) - 1])


def _whole_ns(record: Mapping[str, Any]) -> list[int]:
    return [sum(call) for call in zip(*(record[part] for part in _PARTS), strict=True)]


def of_turns(record: Mapping[str, Any], turns: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record with the calls that count, and what is told of the turns (`Job.turns`): of Run, of whole calls."""
    run, whole = (np.array(ns) * _NANO for ns in (record["run_ns"], _whole_ns(record)))
    told, kept = by_turns(turns, "latency", seconds=run, end_to_end_seconds=whole)
    return dict(record) | {part: [ns for turn in kept for ns in record[part][turn]] for part in _PARTS}, told


def run_values(record: Mapping[str, Any], batch: int) -> dict[str, float]:
    """Return the metrics of one call after another, in seconds and samples per second."""
    runs, binds, copies = record["run_ns"], record["bind_ns"], record["copy_ns"]
    latency_s = statistics.median(runs) * _NANO
    values = {
        "latency": latency_s,
        "throughput": batch / latency_s,
        "session_time": record["session_ns"] * _NANO,
        "bind_time": statistics.median(binds) * _NANO,
        "copy_time": statistics.median(copies) * _NANO,
        "end_to_end_time": statistics.median(_whole_ns(record)) * _NANO,
    }
    if len(runs) >= _P95_SAMPLES:
        values["latency_p95"] = _rank(np.sort(runs), 0.95) * _NANO
    return values


def _series(out: Path, **series: np.ndarray) -> dict[str, Any]:
    """Return series in seconds, by name; when the longest is long, all go into `samples.npz`."""
    if max(map(len, series.values())) <= INLINE_SAMPLES:
        kept = {name: {"values": values.tolist()} for name, values in series.items()}
    else:
        np.savez(out / "samples.npz", **series)  # type: ignore[arg-type]
        kept = {name: {"file": "samples.npz", "key": name} for name in series}
    return {name: {"unit": "s", "count": len(series[name]), **entry} for name, entry in kept.items()}


def run_samples(record: Mapping[str, Any], out: Path, most: int | None = None) -> dict[str, Any]:
    """Return the time of each `Run`, and of each whole call; of an even choice where there are more than `most`."""
    runs, whole = np.array(record["run_ns"]) * _NANO, np.array(_whole_ns(record)) * _NANO
    if most is not None and len(runs) > most:
        # Not every n-th: inputs go round in a circle too.
        chosen = np.linspace(0, len(runs) - 1, most).round().astype(int)
        runs, whole = runs[chosen], whole[chosen]
    return _series(out, latency=runs, end_to_end_time=whole)


def _waited_ns(record: Mapping[str, Any], out: Path) -> np.ndarray:
    ends = np.array(record["end_ns"], np.int64)
    arrivals = np.fromfile(out / "arrivals.bin", "<i8")
    waited: np.ndarray = ends - arrivals[: len(ends)]
    return waited


def load_values(record: Mapping[str, Any], out: Path) -> dict[str, float]:
    """Return the metrics of an offered load: latency counts from a request's arrival.

    So a request that waits behind a slow one counts (no coordinated omission).
    """
    waited, arrived = np.sort(_waited_ns(record, out)), record["arrivals"]
    values = {"session_time": record["session_ns"] * _NANO, "served_share": len(waited) / arrived}
    if len(waited):
        values["load_latency"] = float(np.median(waited)) * _NANO
        values["served_rate"] = len(waited) / (max(record["end_ns"]) * _NANO)
    if len(waited) >= _P95_SAMPLES:
        values["load_latency_p95"] = _rank(waited, 0.95) * _NANO
    if len(waited) >= _P99_SAMPLES:
        values["load_latency_p99"] = _rank(waited, 0.99) * _NANO
    return values


def load_samples(record: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Return the time from arrival to result of each served request, in the order of arrival."""
    return _series(out, load_latency=_waited_ns(record, out) * _NANO)
