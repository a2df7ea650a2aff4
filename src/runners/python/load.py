"""Level `load`: requests arrive when they arrive (an open loop)."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from typing import Any

import numpy as np
from engines import Engine, OpenEngine
from measure import all_rows, full_batches, warm_up
from plan import Plan, Role
from result import Result

# A sleep may end late by this much; the rest of the time is waited through.
_SLEEP_MARGIN_NS = 200_000


class _Queue:
    """Hands out requests in the order of their arrival."""

    def __init__(self, plan: Plan) -> None:
        self.arrivals = next(plan.of(Role.ARRIVALS)).array().tolist()
        self.start = np.zeros(len(self.arrivals), np.int64)
        self.end = np.full(len(self.arrivals), -1, np.int64)
        self._next = itertools.count()
        self._lock = threading.Lock()
        self._limit = plan.last_begin_ns
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


def run_load(plan: Plan, result: Result, open_engine: OpenEngine) -> dict[str, Any]:
    """Serve the arrivals with some sessions at once; return the facts."""
    tensors, queue = plan.inputs(), _Queue(plan)
    engines = [open_engine(plan, plan.text(Role.MODEL), "") for _ in range(plan.sessions)]
    facts = engines[0].facts | all_rows(engines[0], tensors, plan)
    batches = full_batches(tensors, plan)
    for engine in engines:
        warm_up(engine.step, batches, plan)
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
    result.keep_process()
    served = queue.end >= 0
    result.write("times", np.stack([queue.start[served], queue.end[served]], axis=1))
    return facts | {"stop_reason": "all-served" if served.all() else "time-limit"}
