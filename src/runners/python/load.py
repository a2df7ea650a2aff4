"""Mode `load` of the runner contract: requests arrive when they arrive (an open loop)."""

from __future__ import annotations

import argparse
import gc
import itertools
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from engines import Engine, OpenEngine
from latency import all_rows, peak_memory_bytes
from tensors import BadInput, full_batches, read_header

# Twice this is still a number of nanoseconds in 64 bits.
_LATEST_NS = 2**60
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
    if arrivals[0] < 0 or (arrivals[1:] < arrivals[:-1]).any() or arrivals[-1] > _LATEST_NS:
        raise BadInput(f"{path}: expected arrival times from 0 to 2^60 ns that do not fall")
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
        self.failed: list[BaseException] = []

    def start_now(self) -> None:
        """Let the time of the arrivals begin: all workers are there."""
        self.zero = time.monotonic_ns()

    def serve(self, engine: Engine, batches: list[Any]) -> None:
        """Take requests until there is none, or the time is up."""
        clock = time.monotonic_ns
        # What is taken is served, so that those served are the first ones, without a gap.
        while clock() - self.zero <= self._limit and not self.failed:
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
    outputs = all_rows(engines[0], tensors, batch, given.outputs)
    for engine in engines:
        for index in range(given.warmup):
            engine.step(batches[index % len(batches)])
    queue = _Queue(arrivals, given.max_seconds)
    ready = threading.Barrier(len(engines), action=queue.start_now)

    def work(engine: Engine) -> None:
        try:
            ready.wait()
            queue.serve(engine, batches)
        except BaseException as error:
            queue.failed.append(error)

    workers = [threading.Thread(target=work, args=(engine,)) for engine in engines]
    gc.collect()
    gc.disable()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    gc.enable()
    if queue.failed:
        raise queue.failed[0]
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
        "outputs": outputs,
        "peak_memory_bytes": peak_memory_bytes(),
    }
