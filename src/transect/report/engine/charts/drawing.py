"""Draws charts in worker processes: each takes as long as thousands of records to read."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from typing import Any

from markupsafe import Markup

# More processes than these would wait for the one that prepares the charts.
_MAX_COUNT = 2


def begin(drawing: Mapping[str, Any], *, alt_text: str, name: str) -> Future[Markup]:
    """Begin to draw; the result is what `transect.report.engine.charts.svg.render` returns, or raises.

    The drawing is taken as it is now: it may change afterwards.
    """
    asked = json.dumps(drawing), alt_text, name
    future: Future[Markup] = Future()
    try:
        _processes().submit(_drawn, *asked).add_done_callback(lambda done: _settle(future, done, *asked))
    except (OSError, BrokenProcessPool):  # one was killed, or the machine starts no more of them
        _processes.cache_clear()
        _settle(future, None, *asked)
    return future


def _settle(future: Future[Markup], done: Future[Markup] | None, *asked: str) -> None:
    """Pass on what a worker drew; a drawing whose worker was killed is made here."""
    try:
        killed = done is None or isinstance(done.exception(), BrokenProcessPool)
        future.set_result(_drawn(*asked) if done is None or killed else done.result())
    except Exception as raised:  # raised where the drawing is waited for
        future.set_exception(raised)


@cache
def _processes() -> ProcessPoolExecutor:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # No fork: it would take along the threads and locks of numerical libraries.
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(min(_MAX_COUNT, max(1, cores - 1)), mp_context=spawn, initializer=_prepare)


# A fork has none of the threads that feed the processes.
os.register_at_fork(after_in_child=_processes.cache_clear)


def _prepare() -> None:
    # An interrupt reaches the workers too: they end when the report's process does, killed or not.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _drawn(drawing: str, alt_text: str, name: str) -> Markup:
    # It takes long to import, and only the workers need it.
    from transect.report.engine.charts.svg import render

    try:
        return render(json.loads(drawing), alt_text=alt_text, name=name)
    except Exception as error:  # of a kind that may not pass between processes
        raise ValueError(f"{type(error).__name__}: {error}") from None
