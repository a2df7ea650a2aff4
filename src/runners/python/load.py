"""Mode `load` of the runner contract: requests arrive when they arrive (an open loop)."""

from __future__ import annotations

import argparse
import itertools
import resource
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from contract import Engine, OpenEngine
from latency import all_rows
from tensors import BadInput, full_batches, read_header, rows_of, write_outputs

__all__ = ["run_load"]

# A sleep may end late by this much; the rest of the time is waited through.
_SLEEP_MARGIN_NS = 200_000


def _arrivals(path: Path) -> np.ndarray:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error}") from error
    if len(raw) % 8 or not raw:
        raise BadInput(f"{path}: expected int64 arrival times, got {len(raw)} bytes")
    arrivals = np.frombuffer(raw, dtype="<i8")
    if arrivals[0] < 0 or (np.diff(arrivals) < 0).any():
        raise BadInput(f"{path}: expected arrival times >= 0 that do not fall")
    return arrivals


class _Queue:
    """Hands out requests in the order of their arrival."""

    def __init__(self, arrivals: np.ndarray, max_seconds: float) -> None:
        self.arrivals = arrivals.tolist()
        self.start = np.zeros(len(arrivals), np.int64)
        self.end = np.full(len(arrivals), -1, np.int64)
        self._next = itertools.count()
        self._lock = threading.Lock()
        self._limit = 2 * self.arrivals[-1] + int(max_seconds * 1e9)
        self.zero = 0

    def serve(self, engine: Engine, batches: list[Any]) -> None:
        """Take requests until there is none, or the time is up."""
        clock = time.monotonic_ns
        # What is taken is served, so that those served are the first ones, without a gap.
        while clock() - self.zero <= self._limit:
            with self._lock:
                index = next(self._next)
            if index >= len(self.arrivals):
                return
            due = self.zero + self.arrivals[index]
            while (left := due - clock()) > 0:
                time.sleep((left - _SLEEP_MARGIN_NS) / 1e9 if left > _SLEEP_MARGIN_NS else 0)
            begin = clock()
            engine.step(batches[index % len(batches)])
            self.start[index], self.end[index] = begin - self.zero, clock() - self.zero


def run_load(given: argparse.Namespace, open_engine: OpenEngine) -> dict[str, Any]:
    """Serve the arrivals with some sessions at once; return the record's fields."""
    arrivals = _arrivals(given.arrivals)
    tensors, dtypes, batch = read_header(given.inputs)
    engines = [open_engine(given, None) for _ in range(given.sessions)]
    engines[0].check(tensors, dtypes)
    batches = full_batches(tensors, batch)
    engines[0].step(batches[0])
    first_result_ns = time.monotonic_ns()
    parts = all_rows(engines[0], tensors, batch)
    write_outputs(given.outputs, engines[0].output_names, parts, engines[0].output_types)
    for engine in engines:
        for index in range(given.warmup):
            engine.step(batches[index % len(batches)])
    queue = _Queue(arrivals, given.max_seconds)
    faults: list[BaseException] = []

    def work(engine: Engine) -> None:
        try:
            queue.serve(engine, batches)
        except BaseException as error:
            faults.append(error)

    workers = [threading.Thread(target=work, args=(engine,)) for engine in engines]
    queue.zero = time.monotonic_ns()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if faults:
        raise faults[0]
    served = queue.end >= 0
    return {
        **engines[0].facts,
        "session_ns": engines[0].session_ns,
        "first_result_ns": first_result_ns,
        "sessions": given.sessions,
        "arrivals": len(arrivals),
        "start_ns": queue.start[served].tolist(),
        "end_ns": queue.end[served].tolist(),
        "stop_reason": "all-served" if served.all() else "time-limit",
        "outputs": {
            "header": str(given.outputs / "header.json"),
            "rows": None if batch is None else rows_of(tensors),
        },
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
