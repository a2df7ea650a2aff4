"""A runner's raw times as metrics and samples."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.record import INLINE_SAMPLES

_NANO = 1e-9
# A tail percentile needs samples in the tail: twenty beyond it.
_P95_SAMPLES, _P99_SAMPLES = 400, 2000


def _rank(ordered: np.ndarray, share: float) -> float:
    return float(ordered[math.ceil(share * len(ordered)) - 1])


def _whole_ns(record: Mapping[str, Any]) -> list[int]:
    parts = (record[f"{part}_ns"] for part in ("bind", "run", "copy"))
    return [sum(call) for call in zip(*parts, strict=True)]


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


def run_samples(record: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Return the time of each `Run`, and of each whole call."""
    runs, whole = np.array(record["run_ns"]) * _NANO, np.array(_whole_ns(record)) * _NANO
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
